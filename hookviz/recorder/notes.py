"""Notes of a trace: what the recording cannot show, and why, each stated once."""

import warnings
from contextlib import suppress
from typing import Any

from torch.autograd.graph import saved_tensors_hooks

from hookviz.autograd.torch_internals import SAVED_TENSORS_SHOW_THEIR_HOOKS, saved_tensor_hooks
from hookviz.autograd.variable_names import caller_frame
from hookviz.support.source_code import describe_function
from hookviz.trace import Note, TraceData
from hookviz.trace.notes import HookvizWarning


def warn_user(sentence: str) -> bool:
    """Warn the user at the line of their code that is running, and return whether that was possible.

    A filter may turn warnings into errors, or stderr may be missing. Neither may reach the user's pass.
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
        """Add the note with the text of ``key``."""
        self.add(Note.of(key, **parts))

    def add(self, note: Note) -> None:
        """Add ``note`` to the trace, unless it is there already."""
        if note not in self.trace.remarks:
            self.trace.remarks.append(note)

    def warn(self, note: Note) -> None:
        """Add ``note``, and warn the user of it, the first time."""
        if note not in self.trace.remarks:
            warn_user(note.text)
            self.trace.remarks.append(note)

    def has(self, key: str) -> bool:
        """Return whether the trace has a note with the text of ``key``."""
        return any(note.fact == key for note in self.trace.remarks)

    def add_saved_tensor_hooks(self) -> None:
        """Note the saved-tensor hooks that are active now. hookviz does not change them."""
        pair = saved_tensor_hooks(True)
        if pair is not None:
            self.add_packing_hook(pair[0])

    def add_hooks_that_begin(self, hooks: saved_tensors_hooks) -> None:
        """Note saved-tensor hooks that begin now, if torch does not show later for which nodes they packed."""
        if not SAVED_TENSORS_SHOW_THEIR_HOOKS:
            self.add_packing_hook(hooks.pack_hook)

    def add_packing_hook(self, hook: Any) -> None:
        """Note a saved-tensor hook of the user's. Checkpointing's own are left out, since its calls are marked."""
        if getattr(hook, "__module__", "") != "torch.utils.checkpoint":
            self.say("saved", hook=describe_function(hook)[0])
