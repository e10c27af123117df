"""Compute formulas with torch, and compare the results with recorded gradients."""
