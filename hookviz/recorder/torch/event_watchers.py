"""Watchers of functions of torch that concern every recording that is open, in whichever thread they are called."""

from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.recorder.open_recordings import open_recordings
from hookviz.recorder.torch.instrumentation import Watcher


class SavingWatcher(Watcher):
    """Notifies all recordings that hooks pack what nodes save from now on, for as long as such a node lives."""

    def enter(self, hooks: Any) -> None:
        """Handle the begin of ``saved_tensors_hooks``."""
        for recording in tuple(open_recordings):
            recording.passes.packs_saved_tensors = True
            recording.guard(recording.session.notes.add_hooks_that_begin, hooks)


class RemovalWatcher(Watcher):
    """Notifies all recordings that a hook was removed from a dict."""

    def enter(self, handle: RemovableHandle) -> Any:
        """Handle a call of ``handle.remove``; return the dict that the handle belongs to."""
        for recording in tuple(open_recordings):
            recording.guard(recording.hook_ledger.removed, handle)
        return handle.hooks_dict_ref()

    def leave(self, hooks: Any) -> None:
        """Notify the recordings after the removal."""
        for recording in tuple(open_recordings) if hooks else ():
            recording.guard(recording.calls.observers.hook_removed, hooks)


class SwapWatcher(Watcher):
    """Notifies all recordings that two tensors are swapped, which torch refuses if weak references to one exist."""

    def enter(self, first: torch.Tensor, second: torch.Tensor) -> None:
        """Handle a call of ``swap_tensors``, as ``module.to`` makes it for parameters of a subclass."""
        for recording in tuple(open_recordings):
            recording.guard(recording.forget, (first, second))
