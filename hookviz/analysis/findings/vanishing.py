"""Where gradients vanish or explode over a chain of layers, by how much, and whose work it is."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from hookviz.analysis.findings.gates import Gate, gates
from hookviz.analysis.findings.pass_statistics import CHANGING, Finding, PassStatistics
from hookviz.support.messages import say
from hookviz.trace.values import format_number

TIMES = 1e4
"""A gradient whose size changes this many times over a chain of layers vanishes or explodes."""
EACH = 1.5
"""Each of these layers changes it at least this many times, on average."""
_HARDLY = math.log(1.05)
"""A layer that changes the size by less than this, as a dropout may, does not count for the average."""

_LARGEST = 700.0
"""Up to this logarithm a factor fits into a float."""

_SIGNS = {"vanishing": -1, "exploding": 1}


class Work(NamedTuple):
    """What a hook, or a layer, does to the size of the gradient."""

    step: int
    log: float
    """The logarithm of the factor by which the size changes."""
    call: int | None
    """The module call that the layer is; None where it is a node outside of modules, or a hook."""
    node: int
    hook: bool = False

    @property
    def layer(self) -> tuple[str, int]:
        """Tells the hook, the module call or the node from all others."""
        if self.hook:
            return "hook", self.step
        return ("node", self.node) if self.call is None else ("call", self.call)

    def kind(self, of: PassStatistics) -> str:
        """The class of the module, the op, or the name of the hook."""
        if self.hook:
            step = of.trace.steps[self.step]
            return step.hook.label if step.hook else str(step.on)
        return of.trace.ops[self.node] if self.call is None else of.kind(self.call)


Segment = tuple[Gate, list[Work]]
"""A gate, and what is done to the gradient from there to the next gate."""


def vanishing_or_exploding(of: PassStatistics) -> Iterator[Finding]:
    """A finding for a gradient that vanishes or explodes over a chain of layers, and one for a hook that makes it so.

    Compared are the gradients at the gates of the pass (see ``gates``), where the whole gradient goes by. From gate to
    gate its size changes by as much as its norm *and* its root mean square do, whichever changes less: the norm alone
    changes where a mean spreads one number over many, the root mean square alone where the tensor becomes larger or
    smaller, and neither is a fault.

    A chain vanishes or explodes where three things hold. The size changes ``TIMES`` times. It does so even without the
    layer that changes it most: one layer that scales, normalises or averages is no disease, and most transformers have
    one. And the layers change it ``EACH`` times on average: a fresh ResNet of 152 layers makes the gradient 40,000
    times as large, about a quarter more in each block, and learns well.

    A hook that alone changes a gradient ``TIMES`` times, wherever it is, is worth a remark: it may be meant to.
    """
    hooked = _hooked(of)
    segments = list(_segments(of, _comparable(of), hooked))
    for kind, sign in _SIGNS.items():
        chain = _chain(segments, sign)
        if chain:
            yield _found(of, kind, sign, chain)
    for works in hooked.values():
        yield from (_of_hook(of, work) for work in works if abs(work.log) >= math.log(TIMES))


def _comparable(of: PassStatistics) -> list[Gate]:
    """The gates that modules made, with more than one number, and behind the node at which a GradScaler multiplies.

    Where no gate is in a module, or none has more than one number, all gates are compared.
    """
    scaled = {node for row in of.scales for node in row.at}
    found = gates(of)
    last = max((i for i, gate in enumerate(found) if not scaled.isdisjoint(gate.between)), default=-1)
    found = found[last + 1 :]
    found = [gate for gate in found if gate.node in of.trace.owners] or found
    return [gate for gate in found if gate.size > 1] or found


def _hooked(of: PassStatistics) -> dict[int, list[Work]]:
    """Node → what each hook did to the size of the gradient that arrives there."""
    found: dict[int, list[Work]] = {}
    for index, row in of.rows:
        if row.kind in CHANGING and row.subject == "gradient" and row.effect != "kept" and row.node >= 0:
            before, after = (math.hypot(*of.norms(kept)) for kept in (row.before, row.after))
            if 0 < before < math.inf and 0 < after < math.inf:
                work = Work(index, math.log(after) - math.log(before), None, row.node, hook=True)
                found.setdefault(row.node, []).append(work)
    return found


def _segments(of: PassStatistics, passage: list[Gate], hooked: dict[int, list[Work]]) -> Iterator[Segment]:
    """From each gate to the next: what hooks do, and what is left is the work of the layer."""
    for gate, following in pairwise(passage):
        hooks = hooked.get(gate.node, [])
        log = _change(gate, following) - sum([hook.log for hook in hooks])
        yield gate, [*hooks, Work(of.computed[gate.node], log, of.around(gate.between), gate.node)]
    yield from [(gate, []) for gate in passage[-1:]]


def _change(gate: Gate, following: Gate) -> float:
    """The logarithm of the factor by which norm and root mean square change; 0 where one grows and the other falls."""
    norm = math.log(following.norm) - math.log(gate.norm)
    if following.size == gate.size:
        return norm
    rms = norm - math.log(following.size / gate.size) / 2
    return 0.0 if norm * rms < 0 else min(norm, rms, key=abs)


def _chain(segments: list[Segment], sign: int) -> list[Segment]:
    """The stretch over which the size changes the most, with the gate at its end; empty if that is no finding."""
    total = lowest = most = 0.0
    low = first = last = 0
    for place, (_, works) in enumerate(segments, 1):
        for work in works:
            total += sign * work.log
        if total < lowest:
            low, lowest = place, total
        if total - lowest > most:
            first, last, most = low, place, total - lowest
    if most < math.log(TIMES):
        return []
    each: dict[tuple[str, int], float] = {}
    for work in (work for _, works in segments[first:last] for work in works):
        each[work.layer] = each.get(work.layer, 0.0) + sign * work.log
    counted = sum(abs(log) > _HARDLY for log in each.values())
    spread = most - max(each.values()) >= math.log(TIMES)
    return segments[first : last + 1] if spread and most >= counted * math.log(EACH) else []


def _found(of: PassStatistics, kind: str, sign: int, chain: list[Segment]) -> Finding:
    (start, _), (end, _) = chain[0], chain[-1]
    kinds: dict[str, list[Work]] = {}
    for work in (work for _, works in chain[:-1] for work in works):
        kinds.setdefault(work.kind(of), []).append(work)
    logs = {name: sign * sum(work.log for work in works) for name, works in kinds.items()}
    name = max(logs, key=logs.__getitem__)
    count = len({work.layer for work in kinds[name]})
    told = say(f"trouble.{kind}.each", count=count, kind=name, factor=_times(sign * logs[name] / count))
    first = next(work.step for work in kinds[name] if sign * work.log > 0)
    ends = {"start": of.place(start.node), "first": format_number(start.rms, 3)}
    ends |= {"end": of.place(end.node), "last": format_number(end.rms, 3)}
    return Finding(first, kind, say(f"trouble.{kind}", whose=told, **ends))


def _of_hook(of: PassStatistics, work: Work) -> Finding:
    kind = "vanishing" if work.log < 0 else "exploding"
    hook = say("trouble.hook", hook=work.kind(of), on=of.trace.steps[work.step].on)
    return Finding(work.step, kind, say(f"trouble.{kind}.hook", hook=hook, factor=_times(work.log)), "remark")


def _times(log: float) -> str:
    """A factor in words, from its logarithm; it may be beyond what a float holds."""
    return format_number(math.exp(log), 2) if abs(log) < _LARGEST else f"1e{log / math.log(10):+.0f}"
