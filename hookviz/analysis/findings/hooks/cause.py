"""Why a hook did not fire, or fired surprisingly."""

from typing import NamedTuple

from hookviz.analysis.findings.parameters.places import Place


class Cause(NamedTuple):
    """Why a hook did not fire."""

    key: str
    """Its name; ``explanations.py`` has its kind, why the hook did not fire, and what to do."""
    arguments: dict[str, str] = {}  # noqa: RUF012 - a default of a named tuple, which nobody changes
    """What its sentences name, beside the hook, its owner and the step."""
    step: int | None = None
    """The step to look at."""
    is_proven: bool = True
    place: Place | None = None
    """Where the graph is cut, if that is the cause."""
    what_is_open: str = ""
    """The cause that would be proven if all had been observed."""
