"""The steps of a trace, made when they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from hookviz.trace.hooks import Hook
from hookviz.trace.rows import ScaleRow, StepRow
from hookviz.trace.tables import TraceTables
from hookviz.trace.values import Value, Values


class Part(NamedTuple):
    """What one edge contributed to the gradient that arrives: from which node (or the seed), and its value."""

    source: str
    value: Value | None


@dataclass(frozen=True)
class Step:
    """One thing that happened. Steps are counted from 0 here, and from 1 on screen."""

    index: int
    kind: str
    """One of ``KINDS``."""
    on: str
    """The name of the tensor or node."""
    hook: Hook | None
    before: Values
    after: Values
    effect: str | None
    """``kept``, ``edited`` (in place) or ``replaced`` for a hook; ``ran`` where it may have edited; else None."""
    parts: tuple[Part, ...]
    """For an arriving gradient: what each edge contributed."""
    pass_id: int
    node: int
    output: int
    trace: TraceTables = field(repr=False, compare=False)

    @property
    def sentence(self) -> str:
        """What happened, in plain English."""
        from hookviz.trace.sentences import make_sentence

        return make_sentence(self)

    @property
    def scale(self) -> float | None:
        """By how much a GradScaler has scaled the gradient of this step; None where it has not, or none is shown."""
        if self.node < 0 or self.row.subject in ("data", "settings") or self.kind in ("exception", "unobserved"):
            return None
        return next((row.scale for row in self.scales if self.node not in row.others), None)

    @property
    def scales(self) -> list[ScaleRow]:
        """The scales of its pass."""
        return self.trace.lookup.scales(self.pass_id)

    @property
    def row(self) -> StepRow:
        """The step as the trace keeps it."""
        return self.trace.rows[self.index]


class Steps(Sequence[Step]):
    """The steps of a trace, each made when it is asked for."""

    def __init__(self, trace: TraceTables) -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return make_step(self._trace, self._trace.at(index))


def make_step(trace: TraceTables, index: int) -> Step:
    """The step of ``trace`` in row ``index``."""
    row = trace.rows[index]
    hook = None if row.hook is None else trace.hook(row.hook, row.place)
    parts = tuple(Part(trace.name(node), trace.value(value)) for node, _, value in row.parts)  # type: ignore[arg-type]
    on, before, after = trace.on(row), trace.value(row.before), trace.value(row.after)
    return Step(index, row.kind, on, hook, before, after, row.effect, parts, row.pass_id, row.node, row.output, trace)
