"""Several traces of one program: what differs between them, and how to show them together."""

from hookviz.analysis.comparison.comparison import Comparison, Difference, compare

__all__ = ["Comparison", "Difference", "compare"]
