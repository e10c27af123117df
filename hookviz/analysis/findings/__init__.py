"""What is wrong with the gradients of a trace, and where it begins."""

from hookviz.analysis.findings.diagnosis import Trouble, nothing_found, troubles
from hookviz.analysis.findings.vanishing import TIMES

__all__ = ["TIMES", "Trouble", "nothing_found", "troubles"]
