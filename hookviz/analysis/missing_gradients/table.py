"""The table of parameters that got no gradient."""

from dataclasses import dataclass

from hookviz.analysis.missing_gradients.op_cuts import place_of_cuts
from hookviz.analysis.missing_gradients.places import Place, PlaceFinder
from hookviz.support.messages import join, say
from hookviz.support.table import Table
from hookviz.trace import TraceData

MAX_NAMED = 4
"""How many parameters a sentence names."""


@dataclass(frozen=True)
class MissingGradient:
    """Parameters that require grad and that no gradient reached, with the place where its way ends."""

    parameters: tuple[str, ...]
    """Their names; all are cut off at the same place."""
    place: str
    """What kind of place: ``uncalled``, ``no_grad``, ``inference``, ``checkpoint``, ``inside`` (the forward of their
    module), ``between`` (two module calls), ``within`` (the forward of a module around theirs), ``after`` (their module
    returned), or ``unused`` (their module belongs to the graph, and they do not).
    After ``record(cuts=True)`` also ``op``: an op that returns a result without a graph. One that runs in ``no_grad``
    has the place ``no_grad``; the same holds for ``inference`` and ``checkpoint``."""
    sentence: str
    """Where the way ends, and why."""
    step: int | None
    """The step to look at, counted from 0; None if their module was not called."""
    file: str | None
    line: int | None
    """The line of code that cuts, if only one can."""


def list_missing_gradients(trace: TraceData) -> Table[MissingGradient]:
    """List the parameters without a gradient, those of one place together."""
    head = [say(f"table.{name}") for name in ("parameters", "why", "step")]
    rows = _find_rows(trace) if trace.missing_rows else []
    return Table(rows, head, lambda row: _cells(trace, row), nothing=_describe_none(trace))


def _find_rows(trace: TraceData) -> list[MissingGradient]:
    finder = PlaceFinder(trace)
    places: dict[tuple[object, ...], Place] = {}
    by_place: dict[Place, list[str]] = {}
    for row in trace.missing_rows:
        key = row.cuts or (row.owner, row.module)
        if key not in places:
            places[key] = place_of_cuts(trace, row.cuts) if row.cuts else finder.find(row.owner, row.module)
        by_place.setdefault(places[key], []).append(row.name)
    return [
        MissingGradient(tuple(names), place.key, place.sentence, place.step, place.file, place.line)
        for place, names in by_place.items()
    ]


def join_names(names: tuple[str, ...]) -> str:
    """Join the names of parameters; of many, the first ones and how many more there are."""
    more = [say("missing.more", count=len(names) - MAX_NAMED)] if len(names) > MAX_NAMED else []
    return join("join.list", [*names[:MAX_NAMED], *more])


def _cells(trace: TraceData, row: MissingGradient) -> tuple[str, ...]:
    step = "" if row.step is None else say("table.count", step=row.step + 1, steps=len(trace.rows))
    return (join_names(row.parameters), row.sentence, step)


def _describe_none(trace: TraceData) -> str:
    return say("missing.none" if trace.roots else "missing.none.passes")
