"""Whose turn it is: of the passes of a long run, every n-th is recorded, with the forward before it."""

import threading
from collections import Counter

from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.notes import Notes
from hookviz.support.messages import say


def checked_every(every: int) -> int:
    """``every`` as it was given, once it is seen to be a number of passes.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is less than 1.
    """
    if isinstance(every, bool) or not isinstance(every, int):
        raise TypeError(say("error.every", every=repr(every)))
    if every < 1:
        raise ValueError(say("error.every", every=every))
    return every


def is_outermost() -> bool:
    """Whether a pass that begins here is one of its own, rather than part of the one in which it is begun."""
    task: int = current_task()
    return task == -1


class PassSampler:
    """Counts the passes of each thread. A pass that a hook begins, or checkpointing, is part of the one around it."""

    def __init__(self, every: int = 1) -> None:
        self.every = every
        self._begun: Counter[int] = Counter()
        self._is_recorded: dict[int, bool] = {}
        """Whether the last pass that began in a thread is recorded."""

    def begin(self) -> bool:
        """A pass begins in this thread: whether it is recorded."""
        here = threading.get_ident()
        if is_outermost():
            self._is_recorded[here] = self._begun[here] % self.every == 0
            self._begun[here] += 1
        return self._is_recorded.get(here, True)

    def is_recording(self) -> bool:
        """Whether what is called in this thread belongs to a pass that is recorded: the next one, or the one it is in.

        It is asked at every call of a module, also where nothing is recorded.
        """
        if self.every == 1:
            return True
        here = threading.get_ident()
        return self._begun[here] % self.every == 0 if is_outermost() else self._is_recorded.get(here, True)

    def was_recorded(self) -> bool:
        """Whether the step of an optimizer belongs to a pass that is recorded: the last one."""
        return self.every == 1 or self._is_recorded.get(threading.get_ident(), True)

    def add_notes(self, notes: Notes) -> None:
        """Note what was left out."""
        for begun in self._begun.values() if self.every > 1 else ():
            recorded = -(-begun // self.every)
            notes.say("note.every", every=self.every, recorded=recorded, begun=begun)
