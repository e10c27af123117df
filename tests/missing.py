"""Where the graph between parameters and the loss is cut, place by place."""

from typing import NamedTuple

from hookviz import Trace
from hookviz.analysis.findings.parameters.missing_gradients import list_missing_gradients


class Missing(NamedTuple):
    """Parameters without a gradient, with what is known of the place."""

    parameters: tuple[str, ...]
    place: str
    """What kind of place it is."""
    sentence: str
    step: int | None
    file: str | None
    line: int | None
    is_proven: bool
    advice: str


def missing_gradients(trace: Trace) -> list[Missing]:
    """List the parameters without a gradient, with the kind of the place."""
    return [
        Missing(row.parameters, *row.place[:3], *(row.place.code or (None, None)), row.place.is_proven, row.advice)
        for row in list_missing_gradients(trace._data)
    ]
