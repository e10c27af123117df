"""Find where the graph is cut, for each parameter that got no gradient."""

from hookviz.analysis.missing_gradients.table import MissingGradient, list_missing_gradients

__all__ = ["MissingGradient", "list_missing_gradients"]
