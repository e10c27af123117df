"""Functions of torch that are replaced while something is recorded: how they are put in place, and taken back."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol


class Guarded(Protocol):
    """A recording, as far as a replaced function knows of it."""

    def guard(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call one of our own functions; a fault in it must not reach the user."""


Here = Callable[[], Guarded | None]
"""Gives the recording that wants to know what the calling thread does."""
Notify = Callable[..., None]
"""Is called with the recording, what the function returned, and what it was given."""

_ABSENT = object()
"""The owner has the attribute from a class above it, or not at all."""
_NEVER = object()
"""Nothing was ever put in place."""


class ActiveFlag:
    """Whether a function that was put in the place of another still observes; once it does not, it only passes on."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


class Replacement:
    """One attribute of torch that is another while something is recorded.

    What other code has put there before is what ours calls. What it puts there during the recording stays when that
    ends, and may go on calling the function that it found: that one then passes each call on and observes nothing.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Any, ActiveFlag], Any]) -> None:
        self.owner, self.name = owner, name
        self._make = make
        """Gives what to put in place of what stands there."""
        self._original: Any = _NEVER
        self._replaced: Any = _NEVER
        self._live = ActiveFlag()

    def install(self) -> None:
        """Put ours in place of what stands there."""
        standing = self._standing_attribute()
        if standing is not self._original and not self.is_ours(standing):
            self._original, self._live = standing, ActiveFlag()
            self._replaced = self._make(getattr(self.owner, self.name, None), self._live)
        self._live.on = True
        setattr(self.owner, self.name, self._replaced)

    def restore(self) -> None:
        """Put back what stood there; what somebody has put over ours stays."""
        self._live.on = False
        if not self.is_ours(self._standing_attribute()):
            return
        if self._original is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self._original)

    def is_ours(self, standing: Any) -> bool:
        """Whether ``standing`` is ours, or what somebody got who asked for the attribute while ours was there."""
        return standing is self._replaced

    def _standing_attribute(self) -> Any:
        return vars(self.owner).get(self.name, _ABSENT)


def notify_after(function: Callable[..., Any], here: Here, notify: Notify) -> Callable[..., Any]:
    """``function``, which notifies the recording that is ``here`` afterwards; no frame of ours is in what it raises."""

    @wraps(function)
    def notifying(*given: Any, **options: Any) -> Any:
        try:
            result = function(*given, **options)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        recording = here()
        if recording is not None:
            recording.guard(notify, recording, result, *given, *options.values())
        return result

    return notifying


def notifier(here: Here, notify: Notify) -> Callable[[Any, ActiveFlag], Any]:
    """Makes ``notify_after`` of whatever function stands in a place."""

    def make(theirs: Callable[..., Any], active: ActiveFlag) -> Callable[..., Any]:
        return notify_after(theirs, lambda: here() if active.on else None, notify)

    return make
