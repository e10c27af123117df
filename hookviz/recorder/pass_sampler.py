"""Chooses the passes to record: every n-th pass with the forward before it, until the recording stops."""

from hookviz.autograd.torch_internals import current_task
from hookviz.recorder.notes import Notes


def is_outermost() -> bool:
    """Return whether a pass that begins here is a pass of its own, not part of a pass that is running."""
    task: int = current_task()
    return task == -1


class PassSampler:
    """Counts the passes. One that a hook or checkpointing starts is part of the enclosing one."""

    def __init__(self, every: int) -> None:
        self.every = every
        self._begun_passes = 0
        self._is_recorded = True
        """Whether the last pass is recorded."""
        self.pass_count = 0
        """How many passes have begun, recorded or not, with those that run inside another."""
        self.is_stopped = False
        """Whether nothing is recorded any more."""

    def stop(self) -> None:
        """Record nothing from now on; what is running is recorded to its end."""
        self.is_stopped = True

    def begin(self) -> bool:
        """Count a pass that begins in this thread, and return whether it is recorded."""
        if self.is_stopped:
            return False
        self.pass_count += 1
        if is_outermost():
            self._is_recorded = self._begun_passes % self.every == 0
            self._begun_passes += 1
        return self._is_recorded

    def is_recording(self) -> bool:
        """Return whether a call belongs to a recorded pass: the running one, or else the next one.

        This runs at every module call, recorded or not.
        """
        if self.is_stopped:
            return False
        if self.every == 1:
            return True
        return self._begun_passes % self.every == 0 if is_outermost() else self._is_recorded

    def was_recorded(self) -> bool:
        """Return whether the last pass is recorded; an optimizer step belongs to that pass."""
        return not self.is_stopped and (self.every == 1 or self._is_recorded)

    def add_notes(self, notes: Notes) -> None:
        """Note how many passes were left out."""
        if self.every > 1 and self._begun_passes:
            recorded = -(-self._begun_passes // self.every)
            notes.say("every", every=self.every, recorded=recorded, begun=self._begun_passes)
