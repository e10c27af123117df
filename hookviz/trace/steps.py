"""What a person is given of a trace: steps and hooks, made when they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from hookviz.support.messages import say
from hookviz.support.source_code import Source
from hookviz.trace.rows import ScaleRow, StepRow
from hookviz.trace.values import Value

if TYPE_CHECKING:
    from hookviz.trace.trace import Trace


class Part(NamedTuple):
    """What one edge contributed to the gradient that arrives: from which node (or the seed), and its value."""

    source: str
    value: Value | None


Values = Value | tuple[Value | None, ...] | None
"""One gradient, or all the gradients of a node with several, None where torch passes none."""


@dataclass(frozen=True)
class Hook:
    """A hook where it is kept: whose, in which dict, in which place, and where it was written."""

    on: str
    kind: str
    source_: Source
    kept_in: str
    place: int
    """Its place among the hooks of its dict, counted from 0, in the order in which they run."""
    total: int
    flags: tuple[str, ...] = ()
    """How it was registered: ``with_kwargs``, ``always_call``, ``global``."""

    @property
    def name(self) -> str:
        """``c_hook``; a lambda's text; a callable object's class."""
        return self.source_.name

    @property
    def label(self) -> str:
        """The name for a narrow place."""
        return self.source_.label

    @property
    def file(self) -> str | None:
        """Where it was written: ``In [4]`` or a relative path; None if Python does not know."""
        return self.source_.file

    @property
    def line(self) -> int | None:
        """The line in ``file``, counted from 1."""
        return self.source_.line

    @property
    def source(self) -> str | None:
        """Its source text, or None where there is none."""
        return self.source_.text

    @property
    def where(self) -> str:
        """File and line in words, empty where unknown."""
        return say("hook.where", file=self.file, line=self.line) if self.file else ""


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
    trace: "Trace" = field(repr=False, compare=False)

    @property
    def sentence(self) -> str:
        """What happened, in plain English."""
        from hookviz.trace.sentences import sentence

        return sentence(self)

    @property
    def scale(self) -> float | None:
        """By how much a GradScaler has scaled the gradient of this step; None where it has not, or none is shown."""
        if self.node < 0 or self.row.of in ("data", "settings") or self.kind in ("exception", "unobserved"):
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

    def __init__(self, trace: "Trace") -> None:
        self._trace = trace

    def __len__(self) -> int:
        return len(self._trace.rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._trace._step(self._trace.at(index))
