"""What is wrong with the gradients of a trace, and where it begins."""

from hookviz.analysis.findings.diagnosis import Trouble, noted, nothing_found, troubles
from hookviz.analysis.findings.vanishing import TIMES

__all__ = ["TIMES", "Trouble", "noted", "nothing_found", "troubles"]
