"""What is wrong with the gradients of a trace, and where it begins."""

from hookviz.trouble.find import Trouble, noted, nothing_found, troubles
from hookviz.trouble.scale import TIMES

__all__ = ["TIMES", "Trouble", "noted", "nothing_found", "troubles"]
