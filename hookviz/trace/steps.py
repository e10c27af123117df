"""The public classes ``Step`` and ``Steps``: the steps of a trace, created on demand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from hookviz.support.messages import _
from hookviz.support.printable import make_printable
from hookviz.support.table import ShownRow, Table, cells_of, head_of
from hookviz.support.terminal_text import truncate
from hookviz.trace.hooks import Hook
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.rows import Effect, ScaleRow, StepKind, StepRow
from hookviz.trace.values import StepValue, Value

MAX_CELL_OF_MANY = 28
"""In a table of steps a cell has up to this many columns, so that a step takes one line."""
MAX_SHOWN_STEPS = 200
"""Of more steps, a table shows the first and the last ones."""


class Part(NamedTuple):
    """The contribution of one edge to an arriving gradient: its source node (or the seed), and its value."""

    source: str
    """The name of the node that sends it; empty for the seed."""
    value: Value | None
    """The gradient that it sends; None if that is no gradient."""


@dataclass(frozen=True, repr=False)
class Step(ShownRow):
    """One event of a recording. Steps are counted from 0 in Python, and from 1 on screen."""

    index: int
    """Its place in ``Trace.steps``, counted from 0."""
    kind: StepKind
    """What happened: one of the texts in ``hookviz.trace.StepKind``."""
    on: str
    """The name of the tensor, node, module call or optimizer that the step is about."""
    hook: Hook | Any
    """The hook that ran; None in a step without one."""
    before: StepValue
    """What the step began with: a ``Value``, a tuple of them for several tensors, or None."""
    after: StepValue
    """What the step ended with, or the only value of a step that has one, such as an arriving gradient."""
    effect: Effect | None
    """``kept``, ``edited`` (in place) or ``replaced`` for a hook; ``ran`` if it may have edited; else None."""
    parts: tuple[Part, ...]
    """The contribution of each edge to an arriving gradient."""
    pass_id: int
    """The index of its pass in the trace, from 0; see ``pass_number``."""
    node: int | None
    """The index of the node that the step is about, or whose tensor it is about."""
    output: int | None
    """The output of the node at which the tensor is, for a step about a tensor."""
    trace: NamedTables = field(repr=False, compare=False)

    @property
    def sentence(self) -> str:
        """The step as a sentence in English."""
        from hookviz.trace.sentences import make_sentence

        return make_sentence(self)

    def _columns(self) -> dict[str, str]:
        from hookviz.trace.sentences import list_step_columns

        return list_step_columns(self)

    def __repr__(self) -> str:
        text = _("Step {number}: {sentence}").format(number=f"{self.index + 1:,}", sentence=self.sentence)
        return make_printable(text)

    @property
    def pass_number(self) -> int:
        """The number of its pass, from 1, among all passes that ran during the recording, dropped and skipped ones too.

        A forward step has the number of the next pass.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record(keep=1) as trace:
        ...     for _ in range(5):
        ...         (x * x).backward()
        >>> trace.steps[0].pass_id, trace.steps[0].pass_number
        (0, 5)
        """
        return self.trace.pass_number(self.pass_id)

    @property
    def scale(self) -> float | None:
        """The factor by which a GradScaler scaled the gradient of this step; None if unscaled, or without gradient."""
        if self.node is None or self.row.subject in ("data", "settings") or self.kind in ("exception", "unobserved"):
            return None
        return next((row.scale for row in self.scales if self.node not in row.others), None)

    @property
    def scales(self) -> list[ScaleRow]:
        """The scales of the pass of this step."""
        return self.trace.lookup.scales(self.pass_id)

    @property
    def row(self) -> StepRow:
        """The step as a row of the trace."""
        return self.trace.rows[self.index]


class Steps(Sequence[Step]):
    """The steps of a trace, or a slice of them, each created when it is accessed: a table in Jupyter and printed."""

    def __init__(self, trace: NamedTables, places: range | None = None) -> None:
        self._trace = trace
        self._places = places
        """The indexes of a slice; None for all steps, also those that a running recording adds."""

    def __len__(self) -> int:
        return len(self._trace.rows) if self._places is None else len(self._places)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> "Steps": ...
    def __getitem__(self, index: int | slice) -> "Step | Steps":
        if isinstance(index, slice):
            return Steps(self._trace, (range(len(self)) if self._places is None else self._places)[index])
        return make_step(self._trace, self._trace.at(index) if self._places is None else self._places[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # a recording adds steps

    def _table(self) -> Table[Step]:
        half = MAX_SHOWN_STEPS // 2
        below = ""
        if len(self) <= MAX_SHOWN_STEPS:
            shown = list(self)
        else:
            shown = [*self[:half], *self[-half:]]
            below = _(
                "{count} steps between these are left out: take a slice, such as trace.steps[{half}:{end}]."
            ).format(count=f"{len(self) - MAX_SHOWN_STEPS:,}", half=half, end=2 * half)
        return Table(shown, head_of(shown), _brief_cells, _("No steps."), below)

    def __repr__(self) -> str:
        return repr(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


def _brief_cells(step: Step) -> tuple[str, ...]:
    """Return the cells of a step in a table of many; the step itself shows all."""
    return tuple(truncate(text, MAX_CELL_OF_MANY) for text in cells_of(step))


def make_step(trace: NamedTables, index: int) -> Step:
    """Make the step of row ``index``."""
    row = trace.rows[index]
    hook = None if row.hook is None else trace.hook(row.hook, row.place)
    parts = tuple(Part(trace.name(node), trace.value(value)) for node, _, value in row.parts)  # type: ignore[arg-type]
    on, before, after = trace.get_subject_name(row), trace.value(row.before), trace.value(row.after)
    return Step(index, row.kind, on, hook, before, after, row.effect, parts, row.pass_id, row.node, row.output, trace)
