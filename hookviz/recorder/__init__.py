"""Observe a pass and change nothing."""

from hookviz.recorder.recording import HookvizWarning, record

__all__ = ["HookvizWarning", "record"]
