"""Observe a pass and change nothing."""

from hookviz.recorder.api import record

__all__ = ["record"]
