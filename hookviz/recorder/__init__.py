"""Observe a pass and change nothing."""

from hookviz.recorder.api import record
from hookviz.recorder.notes import HookvizWarning

__all__ = ["HookvizWarning", "record"]
