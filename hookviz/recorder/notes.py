"""What a recording cannot show, said once in the trace's notes with the reason."""

import warnings
from contextlib import suppress
from typing import Any

from hookviz.autograd.graph import caller_frame
from hookviz.autograd.torch_internals import (
    functorch_level,
    saved_tensor_hooks,
    saved_tensor_hooks_allowed,
    why_saved_tensor_hooks_are_forbidden,
)
from hookviz.support.source_code import describe
from hookviz.support.warning import HookvizWarning
from hookviz.trace import Note, TraceData


def packed() -> bool:
    """Whether hooks pack what nodes save that are made now."""
    return saved_tensor_hooks(True) is not None


def warn(sentence: str) -> bool:
    """Warn the user, at the line of theirs that runs now; whether that was possible.

    A filter may turn warnings into errors, or there may be no stderr: that must not reach the user's pass.
    """
    with suppress(Exception):
        frame = caller_frame()
        warnings.warn_explicit(sentence, HookvizWarning, frame.f_code.co_filename, frame.f_lineno)
        return True
    return False


class Notes:
    """Adds notes to a trace, each of them once."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace

    def say(self, key: str, **parts: Any) -> None:
        """Note the text kept under ``key``."""
        self.add(Note.of(key, **parts))

    def add(self, note: Note) -> None:
        """Put ``note`` into the trace, unless it stands there."""
        if note not in self.trace.remarks:
            self.trace.remarks.append(note)

    def add_saved_tensor_hooks(self) -> None:
        """Saved-tensor hooks that are in force now, or forbidden now, are named; nothing is done to them."""
        pair = saved_tensor_hooks(True)
        if pair is not None:
            self.add_packing_hook(pair[0])
        if not saved_tensor_hooks_allowed() and functorch_level() is None:  # torch.func forbids them by itself
            self.say("note.saved.disabled", message=why_saved_tensor_hooks_are_forbidden())

    def add_packing_hook(self, hook: Any) -> None:
        """Name a saved-tensor hook of the user's; checkpointing has such hooks, too, and its calls are marked."""
        if getattr(hook, "__module__", "") != "torch.utils.checkpoint":
            self.say("note.saved", hook=describe(hook)[0])
