"""Findings about hooks: those that did not fire and why, and those that did harm."""
