"""PyTorch's own formula for a gradient, with the values in it."""

from hookviz.why.reasons import Explainer, Reason, why

__all__ = ["Explainer", "Reason", "why"]
