"""Where gradients vanish or explode on their way: by how much, between what, and whose work it is."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from hookviz.trouble.looks import Found, Pass
from hookviz.trouble.strange import CHANGING
from hookviz.values import number
from hookviz.words import say

TIMES = 1e4
"""A gradient whose norm changes so many times along one path vanishes or explodes."""
_NEAR = 3
"""Within so many nodes of a leaf, beside a way that goes on, a weight is turned, cast or expanded."""


@dataclass
class Ways:
    """The gradients of a pass on the way from the losses down, each with the largest and the smallest before it."""

    norms: dict[int, float] = field(default_factory=dict)
    """Node → the norm of what arrived; of several, of the largest."""
    before: dict[int, int] = field(default_factory=dict)
    """Node → the node that sent the most of it."""
    arrived: dict[int, int] = field(default_factory=dict)
    """Node → the step at which that was."""
    hooked: dict[int, list[tuple[int, float]]] = field(default_factory=dict)
    """Node → (step, factor) of each hook that changed how large what arrived is."""
    seen: set[int] = field(default_factory=set)
    """The nodes whose gradients are compared."""
    largest: dict[int, int] = field(default_factory=dict)
    smallest: dict[int, int] = field(default_factory=dict)


class Work(NamedTuple):
    """What one module, node or hook does to the norm: its logarithm."""

    step: int
    kind: str
    """The class of the module, the op, or the name of the hook."""
    who: str
    log: float


def scales(of: Pass) -> Iterator[Found]:
    """A finding for the path along which norms fall the most, and one for that along which they rise the most.

    Looked at is what arrives at the nodes that modules have made; at all nodes, where no module was recorded.
    A leaf is not looked at: its gradient is summed over a batch, and one cannot compare it with those on the way.
    Nor are scalars, unless there is nothing else.
    """
    ways = _ways(of)
    for kind, extreme in (("vanishing", ways.largest), ("exploding", ways.smallest)):
        times = {node: ways.norms[extreme[node]] / ways.norms[node] for node in ways.seen}
        if kind == "exploding":
            times = {node: 1 / part for node, part in times.items()}
        end = max(times, key=times.__getitem__, default=None)
        if end is not None and times[end] >= TIMES:
            yield _found(of, ways, kind, extreme[end], end)


def _ways(of: Pass) -> Ways:
    ways = Ways()
    for index, row in of.rows:
        if row.kind in ("seed", "arrive") and isinstance(row.after, int) and row.node >= 0:
            norm = of.norm(row.after)
            if norm is None or not ways.norms.get(row.node, 0.0) < norm < math.inf:
                continue
            ways.norms[row.node], ways.arrived[row.node] = norm, index
            if row.parts:
                ways.before[row.node] = _most(of, row.parts)
        elif row.kind in CHANGING and row.of is None and row.effect != "kept" and row.node >= 0:
            factor = _factor(of, row.before, row.after)
            if factor:
                ways.hooked.setdefault(row.node, []).append((index, factor))
    ways.seen = _seen(of, ways)
    scaled = {node for row in of.trace.lookup.scales(of.pass_id) for node in row.at}
    for node in ways.norms:  # in the order in which they arrived
        _extend(ways, node, scaled)
    return ways


def _most(of: Pass, parts: tuple[tuple[int, int, int | None], ...]) -> int:
    """The node that contributed most."""
    if len(parts) == 1:
        return parts[0][0]
    return max((max(of.norms(value), default=0.0), node) for node, _, value in parts)[1]


def _factor(of: Pass, before: object, after: object) -> float:
    """How many times as large a gradient is; 0 where that is not known."""
    one, other = (math.hypot(*of.norms(kept)) for kept in (before, after))
    return other / one if 0 < one < math.inf and 0 < other < math.inf else 0.0


def _seen(of: Pass, ways: Ways) -> set[int]:
    """The nodes whose gradients are compared."""
    nodes = set(ways.norms) & set(of.computed)
    nodes -= _beside(of, ways)
    nodes = {node for node in nodes if node in of.trace.owners} or nodes
    return {node for node in nodes if _many(of, ways.arrived[node])} or nodes


def _many(of: Pass, step: int) -> bool:
    """Whether what arrived at a step has more than one number."""
    return bool(math.prod(of.trace.values[of.trace.rows[step].after][0]) > 1)


def _beside(of: Pass, ways: Ways) -> set[int]:
    """Leaves, and the nodes that only turn, cast or expand one."""
    height: dict[int, int] = {}
    beside: set[int] = set()
    for node in reversed(of.computed):
        ends = of.ends(node)
        height[node] = 1 + max((height.get(end, 0) for end in ends), default=0)
        most = _NEAR if len(ends) > 1 else 1
        beside |= {end for end in ends if height.get(end, 0) <= most}
    return beside


def _extend(ways: Ways, node: int, scaled: set[int]) -> None:
    """Carry on what was the largest and the smallest on the way to ``node``."""
    before = ways.before.get(node, -1)
    for extreme, sign in ((ways.largest, 1), (ways.smallest, -1)):
        start = None if before in scaled else extreme.get(before)
        if node in ways.seen and (start is None or sign * ways.norms[node] > sign * ways.norms[start]):
            start = node
        if start is not None:
            extreme[node] = start


def _found(of: Pass, ways: Ways, kind: str, start: int, end: int) -> Found:
    sign = 1 if kind == "exploding" else -1
    works = list(_works(of, ways, start, end))
    logs = _sums((work.kind, sign * work.log) for work in works)
    name = max(logs, key=lambda kind: logs[kind])
    whose = [work for work in works if work.kind == name]
    each = _sums((work.who, sign * work.log) for work in whose)
    most = max(each, key=lambda who: each[who])
    if each[most] > sum(logs.values()) / 2:
        whose = [work for work in whose if work.who == most]
        told = say(f"trouble.{kind}.one", who=most, factor=_times(sign * each[most]))
    else:
        count = len(each)
        told = say(f"trouble.{kind}.each", count=count, kind=name, factor=_times(sign * logs[name] / count))
    first = next(work.step for work in whose if sign * work.log > 0)
    high, low = ways.norms[start], ways.norms[end]
    ends = {"start": of.place(start), "first": number(high, 3), "end": of.place(end), "last": number(low, 3)}
    return Found(first, kind, say(f"trouble.{kind}", whose=told, **ends))


def _times(log: float) -> str:
    return number(math.exp(log), 2)


def _sums(logs: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, log in logs:
        found[name] = found.get(name, 0.0) + log
    return found


def _works(of: Pass, ways: Ways, start: int, end: int) -> Iterator[Work]:
    """Who changed the norm between ``start`` and ``end``, in order."""
    path = [end]
    while path[-1] != start:
        path.append(ways.before[path[-1]])
    path.reverse()
    for node, following in pairwise(path):
        log = math.log(ways.norms[following] / ways.norms[node])
        for step, factor in ways.hooked.get(node, ()):
            log -= math.log(factor)
            happened = of.trace.steps[step]
            name = happened.hook.label if happened.hook else happened.on
            yield Work(step, name, say("trouble.hook", hook=name, on=happened.on), math.log(factor))
        row = of.owner(node)
        kind = of.trace.ops[node] if row is None else of.trace.modules[row.module].kind
        yield Work(of.computed[node], kind, of.place(node), log)
