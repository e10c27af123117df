"""A quick look at the values of one pass, and at what is theirs: norms, NaN and Inf, names in the user's words."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, NamedTuple

from hookviz.support.messages import say
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, ScaleRow, StepRow, TensorRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import Value, get_norm_nan_inf

CHANGING = (*(kind for kind in HOOK_KINDS if kind not in (*FORWARD_HOOK_KINDS, *STEP_HOOK_KINDS)), "unknown_hook")
"""Kinds of step that can turn one gradient into another on its way."""


class Finding(NamedTuple):
    """A finding in one pass: where it begins, what it is, in words, and how bad."""

    step: int
    kind: str
    sentence: str
    severity: str = "warning"
    seen: bool = True
    """Whether it is known why; Inf that a module returns for a reason that was not seen may be a mask."""


class PassStatistics:
    """The steps of one pass, in order, with a look at each of their values.

    A trace has many steps: kept is what no garbage collector has to look through.
    """

    def __init__(self, trace: TraceData, steps: list[int], tensors: list[TensorRow]) -> None:
        self.trace, self.steps, self.tensors = trace, steps, tensors
        self.pass_id = trace.rows[steps[0]].pass_id
        self._norms: dict[int, float | None] = {}
        self._nan: set[int] = set()
        self._inf: set[int] = set()
        self.noticed = False
        """Whether a NaN or Inf was seen in what was looked at so far."""

    @property
    def rows(self) -> Iterator[tuple[int, StepRow]]:
        """Each step's number, and the step."""
        return zip(self.steps, map(self.trace.rows.__getitem__, self.steps), strict=True)

    @cached_property
    def computed(self) -> dict[int, int]:
        """Node → the step at which it computes, in order."""
        return {row.node: step for step, row in self.rows if row.kind == "compute"}

    @cached_property
    def arrived(self) -> dict[int, int]:
        """Node → the step at which its gradient arrives; of several gradients, that of the largest norm."""
        found: dict[int, int] = {}
        largest: dict[int, float] = {}
        for step, row in self.rows:
            if row.kind not in ("seed", "arrive") or not isinstance(row.after, int) or row.node < 0:
                continue
            norm = self.norm(row.after)
            if norm is not None and not largest.get(row.node, -1.0) >= norm:
                found[row.node], largest[row.node] = step, norm
        return found

    @property
    def scales(self) -> list[ScaleRow]:
        """What GradScalers have multiplied the gradients of this pass by."""
        return self.trace.lookup.scales(self.pass_id)

    def ends(self, node: int) -> list[int]:
        """Where the gradients go that a node sends, from slot to slot."""
        sent = self.trace.rows[self.computed[node]].after if node in self.computed else None
        slots = range(len(sent) if isinstance(sent, tuple) else 1)
        return [place[0] for slot in slots if (place := self.trace.edges.get((node, slot))) is not None]

    def norm(self, index: int) -> float | None:
        """The 2-norm of what is kept under ``index``; None where its numbers are not known, or there are none."""
        if index not in self._norms:
            self._norms[index] = self._look(index)
        return self._norms[index]

    def _look(self, index: int) -> float | None:
        value = self.trace.values[index]
        if value[-1] is not None or 0 in value[0]:
            return None
        norm, nan, inf = get_norm_nan_inf(value)
        if nan:
            self._nan.add(index)
        if inf:
            self._inf.add(index)
        self.noticed = self.noticed or nan > 0 or inf > 0
        return norm

    def value(self, index: int) -> Value:
        """The value under ``index``."""
        return Value(*self.trace.values[index])

    def norms(self, kept: Any) -> list[float]:
        """Of one value, of several, or of none, the norms that are known."""
        if kept is None or isinstance(kept, int):
            norm = None if kept is None else self.norm(kept)
            return [] if norm is None else [norm]
        found = [self.norm(index) for index in kept if index is not None]
        return [norm for norm in found if norm is not None]

    def begins(self, before: Any, after: Any) -> str | None:
        """``nan`` or ``inf`` where that is in ``after`` and was not in ``before``; a NaN may well give an Inf."""
        if not self.bad(after) or self._holds(self._nan, before):
            return None
        if self._holds(self._nan, after):
            return "nan"
        return None if self._holds(self._inf, before) else "inf"

    def bad(self, kept: Any) -> bool:
        """Whether a NaN or Inf is among the numbers."""
        if kept is not None and (isinstance(kept, tuple) or kept not in self._norms):
            self.norms(kept)
        return self.noticed and (self._holds(self._nan, kept) or self._holds(self._inf, kept))

    def _holds(self, those: set[int], kept: Any) -> bool:
        self.norms(kept)
        return bool(those) and not those.isdisjoint(kept if isinstance(kept, tuple) else (kept,))

    def calls_around(self, node: int) -> list[int]:
        """The module calls in which ``node`` was made, the innermost first."""
        return list(iter_enclosing_calls(self.trace, self.trace.owners.get(node, -1)))

    def around(self, nodes: Iterable[int]) -> int | None:
        """The innermost module call in which all of ``nodes`` were made; None where there is none."""
        if not self.trace.owners:
            return None
        common: list[int] | None = None
        owners = {self.trace.owners.get(node, -1): node for node in nodes}
        for node in owners.values():
            there = self.calls_around(node)
            common = there if common is None else [call for call in common if call in there]
        return common[0] if common else None

    def named(self, node: int) -> str:
        """A node, and the module that it is part of: ``LogBackward0 of net.3 (Log)``."""
        name, call = self.trace.name(node), self.trace.owners.get(node)
        return name if call is None else say("trouble.of", on=name, module=self.module(call))

    def module(self, call: int) -> str:
        """A module and its class: ``net.3 (Log)``."""
        return say("trouble.module", on=self.trace.call(call), kind=self.kind(call))

    def kind(self, call: int) -> str:
        """The class of the module that was called."""
        return self.trace.modules[self.trace.calls[call].module].kind

    def place(self, node: int) -> str:
        """The module that a node is part of, or the node where there is none."""
        call = self.trace.owners.get(node)
        return self.trace.name(node) if call is None else self.module(call)
