"""Replaces functions of torch while a recording is open, and restores them."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

Here: TypeAlias = "Callable[[], Recording | None]"
"""Returns the recording to notify of what the calling thread does, or None."""
Notify = Callable[..., None]
"""Is called with the recording, the result of the function, and its arguments."""

_ABSENT = object()
"""The owner has no such attribute of its own."""
_NEVER = object()
"""Nothing has ever been installed."""


class ActiveFlag:
    """Whether a replacement function still observes. Once it does not, it only calls the original."""

    __slots__ = ("on",)

    def __init__(self) -> None:
        self.on = False


class Replacement:
    """One attribute of torch that is replaced while a recording is open.

    If other code has replaced it before, our replacement calls that. If other code replaces it during the recording,
    its replacement stays when the recording ends, and may go on calling ours, which then only passes each call on.
    """

    def __init__(self, owner: Any, name: str, make: Callable[[Any, ActiveFlag], Any]) -> None:
        self.owner, self.name = owner, name
        self._make = make
        """Makes the replacement from the current attribute."""
        self._original: Any = _NEVER
        self._replacement: Any = _NEVER
        self._active = ActiveFlag()

    def install(self) -> None:
        """Replace the current attribute."""
        attribute = self._standing_attribute()
        if attribute is not self._original and attribute is not self._replacement:
            self._original, self._active = attribute, ActiveFlag()
            self._replacement = self._make(getattr(self.owner, self.name, None), self._active)
        self._active.on = True
        setattr(self.owner, self.name, self._replacement)

    def restore(self) -> None:
        """Restore the original attribute, unless somebody has replaced ours."""
        self._active.on = False
        if self._standing_attribute() is not self._replacement:
            return
        if self._original is _ABSENT:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self._original)

    def _standing_attribute(self) -> Any:
        return vars(self.owner).get(self.name, _ABSENT)


def make_notifier(here: Here, notify: Notify) -> Callable[[Any, ActiveFlag], Any]:
    """Return a factory that wraps a function to notify the recording after each call.

    Tracebacks of its exceptions show no frame of ours.
    """

    def make(function: Callable[..., Any], active: ActiveFlag) -> Callable[..., Any]:
        @wraps(function)
        def notifying(*arguments: Any, **options: Any) -> Any:
            try:
                result = function(*arguments, **options)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            recording = here() if active.on else None
            if recording is not None:
                recording.guard(notify, recording, result, *arguments, *options.values())
            return result

        return notifying

    return make
