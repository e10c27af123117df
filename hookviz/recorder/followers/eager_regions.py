"""Runs compiled code eagerly while a recording is open, so that the modules and hooks in it are observed."""

from typing import Any

import torch

from hookviz.recorder.follower import Follower
from hookviz.recorder.notes import Notes
from hookviz.recorder.torch.compiled_regions import FORCE_EAGER, runs_eagerly


class EagerRegions(Follower):
    """Sets the stance of the compiler, which holds for all threads, and restores it."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self._stance: Any = None

    def recording_begins(self) -> None:
        """Let compiled code run eagerly from now on."""
        self._stance = torch.compiler.set_stance(FORCE_EAGER)

    def recording_ends(self) -> None:
        """Restore the stance, unless the program has set one of its own in the block."""
        stance, self._stance = self._stance, None
        if stance is not None and runs_eagerly():
            stance.__exit__(None, None, None)

    def eager_region_begins(self) -> None:
        """Note that this is another program than the compiled one."""
        self.notes.say("compiled.eager")
