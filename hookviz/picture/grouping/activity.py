"""What happened inside a box: at which steps, how large the gradients were that arrived, and which hooks ran."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hookviz.picture.grouping.tree import Group, Tree
from hookviz.trace import HOOK_KINDS, TraceData
from hookviz.trace.values import get_norm_nan_inf


class Arrival(NamedTuple):
    """A gradient that arrived: at which step, its 2-norm, and how many of its numbers are NaN or infinite."""

    step: int
    norm: float
    bad: int

    @property
    def told(self) -> float | str:
        """The norm in four digits, as pictures and sentences have it, or in words where it is no number."""
        return float(f"{self.norm:.4g}") if math.isfinite(self.norm) else str(self.norm)


@dataclass
class Of:
    """What happened at one node, or in one call."""

    steps: list[int] = field(default_factory=list)
    arrived: list[Arrival] = field(default_factory=list)
    fired: list[tuple[int, int]] = field(default_factory=list)
    """(step, hook)"""
    hooks: set[int] = field(default_factory=set)
    """Those that were registered, whether or not they fired."""

    def add(self, trace: TraceData, index: int) -> None:
        """A step was about this."""
        row = trace.rows[index]
        self.steps.append(index)
        if row.kind in ("seed", "arrive") and isinstance(row.after, int):
            norm, nan, inf = get_norm_nan_inf(trace.values[row.after])
            self.arrived.append(Arrival(index, norm, nan + inf))
        if row.hook is not None and row.kind in HOOK_KINDS:
            self.fired.append((index, row.hook))


class Activity:
    """What happened in one pass, node by node and call by call; and in the boxes of its tree."""

    def __init__(self, tree: Tree) -> None:
        trace, self._tree = tree.trace, tree
        self.nodes: dict[int, Of] = {}
        self.calls: dict[int, Of] = {}
        steps = trace.lookup.steps(tree.pass_id)
        self.first, self.last = (steps[0], steps[-1]) if steps else (-1, -1)
        """The first and the last step of the pass."""
        for index in steps:
            row = trace.rows[index]
            of = self._of(row.node, row.call)
            if of is None:
                continue
            of.add(trace, index)
        self._register()

    def _of(self, node: int, call: int) -> Of | None:
        """A step about a call belongs to its box, even where it marks a node as well."""
        if call >= 0:
            return self.calls.setdefault(call, Of())
        return self.nodes.setdefault(node, Of()) if node >= 0 else None

    def _register(self) -> None:
        trace = self._tree.trace
        hooks = trace.lookup.hooks(self._tree.pass_id)
        for node, here in hooks.by_node.items():
            self.nodes.setdefault(node, Of()).hooks.update(here)
        for call in self._tree.calls if hooks.by_module else ():
            self.calls.setdefault(call, Of()).hooks.update(hooks.by_module.get(trace.calls[call].module, ()))

    def inside(self, fold: Group) -> Of:
        """What happened in ``fold``, however deep."""
        return merged(self._parts(fold))

    def _parts(self, fold: Group) -> Iterator[Of]:
        yield from (self.nodes[node] for node in fold.nodes if node in self.nodes)
        yield from (self.calls[call] for call in fold.calls if call in self.calls)


def of_pass(trace: TraceData, pass_id: int) -> Of:
    """What happened in a whole pass."""
    found = Of()
    for index in trace.lookup.steps(pass_id):
        found.add(trace, index)
    found.hooks.update(trace.lookup.hooks(pass_id).places, (hook for _, hook in found.fired))
    return found


def merged(parts: Iterable[Of]) -> Of:
    """What happened in all of ``parts``, in order."""
    found = Of()
    for of in parts:
        found.steps += of.steps
        found.arrived += of.arrived
        found.fired += of.fired
        found.hooks |= of.hooks | {hook for _, hook in of.fired}
    for happened in (found.steps, found.arrived, found.fired):
        happened.sort()
    return found


def spans(steps: list[int]) -> list[tuple[int, int]]:
    """Steps in order as (first, last) of each unbroken row of them.

    >>> spans([2, 3, 4, 9])
    [(2, 4), (9, 9)]
    """
    found: list[tuple[int, int]] = []
    for step in steps:
        if found and step == found[-1][1] + 1:
            found[-1] = (found[-1][0], step)
        else:
            found.append((step, step))
    return found


class Range(NamedTuple):
    """How large the gradients were that have arrived so far."""

    step: int
    low: float
    high: float
    bad: int
    """How many of them hold a NaN or an infinite number."""


def ranges(arrived: list[Arrival]) -> Iterator[Range]:
    """Each time that the range of norms has changed so much that one can see it."""
    low, high, bad = math.inf, -math.inf, 0
    told: Range | None = None
    for step, norm, wrong in arrived:
        if math.isfinite(norm):
            low, high = min(low, norm), max(high, norm)
        bad += wrong > 0
        if told is None or bad != told.bad or not (_alike(low, told.low) and _alike(high, told.high)):
            told = Range(step, low, high, bad)
            yield told


def _alike(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=0.02)
