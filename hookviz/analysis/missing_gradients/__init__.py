"""Find where the way of the gradient ends, for each parameter that got none."""

from hookviz.analysis.missing_gradients.table import MissingGradient, list_missing_gradients

__all__ = ["MissingGradient", "list_missing_gradients"]
