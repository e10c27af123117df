"""A function of torch that tells a recording what it has done, and is that function otherwise."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

Here = Callable[[], "Recording | None"]
"""Gives the recording that wants to be told of what the calling thread does."""
Tell = Callable[..., None]
"""Is called with the recording, what the function returned, and what it was given."""


def told(function: Callable[..., Any], here: Here, tell: Tell) -> Callable[..., Any]:
    """``function``, which tells the recording that is ``here`` afterwards; no frame of ours is in what it raises."""

    @wraps(function)
    def telling(*given: Any, **options: Any) -> Any:
        try:
            result = function(*given, **options)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        recording = here()
        if recording is not None:
            recording.carefully(tell, recording, result, *given, *options.values())
        return result

    return telling
