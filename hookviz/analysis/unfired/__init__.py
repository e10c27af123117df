"""Explain why registered hooks did not fire, or fired in a way that one may not expect."""

from hookviz.analysis.unfired.causes import Cause
from hookviz.analysis.unfired.hooks import UnfiredHook, list_unfired_hooks
from hookviz.analysis.unfired.relevance import list_relevant_hooks

__all__ = ["Cause", "UnfiredHook", "list_relevant_hooks", "list_unfired_hooks"]
