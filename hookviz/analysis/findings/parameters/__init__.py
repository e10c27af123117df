"""Findings about parameters that got no gradient, and where the graph is cut."""
