"""Find gradients that vanish or explode over a chain of layers, and the layers and hooks that cause it."""

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from hookviz.analysis.findings.values.bottlenecks import Gate, find_gates
from hookviz.analysis.findings.values.faint_weights import find_faint_weights, find_shrinking_weights
from hookviz.analysis.findings.values.pass_statistics import CHANGING_KINDS, PassFinding, PassStatistics
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import format_number

_HOOKS = {
    "vanishing": N_("{hook} leaves {factor} of the gradient that it receives."),
    "exploding": N_("{hook} makes the gradient {factor} times as large."),
}
"""Kind → what a hook does."""

_EACH_LAYER = {
    "vanishing": N_("each of {count} {kind} leaves about {factor} of it."),
    "exploding": N_("each of {count} {kind} makes it about {factor} times as large."),
}
"""Kind → what each layer of the chain does."""

_CHAINS = {
    "vanishing": N_(
        "The gradient vanishes: from {start} to {end} the root mean square of its numbers falls from "
        "{first} to {last}; {whose}"
    ),
    "exploding": N_(
        "The gradient explodes: from {start} to {end} the root mean square of its numbers rises from "
        "{first} to {last}; {whose}"
    ),
}
"""Kind → the sentence about a chain of layers."""

CHAIN_FACTOR = 1e4
"""A gradient vanishes or explodes if its size changes by at least this factor over a chain of layers."""
LAYER_FACTOR = 1.5
"""The layers of such a chain change the size by at least this factor each, on average."""
_NEGLIGIBLE = math.log(1.05)
"""The average leaves out a layer that changes the logarithm of the size by no more than this, such as a dropout."""

_LARGEST_LOG = 700.0
"""A factor with a larger logarithm may not fit into a float."""

_SIGNS = {"vanishing": -1, "exploding": 1}
"""Kind of finding → the sign of the logarithms that contribute to it."""
_FACTOR = 3
"""Weights change the size if each layer does by at least this factor, on average."""


class SizeChange(NamedTuple):
    """The change that one hook or one layer makes to the size of a gradient."""

    step: int
    log: float
    """The logarithm of the factor by which the size changes."""
    call: int | None
    """The module call of the layer; None for a hook, and for a node outside of modules."""
    node: int
    is_hook: bool = False

    @property
    def layer(self) -> tuple[str, int]:
        """A key that identifies the hook, the module call or the node."""
        if self.is_hook:
            return "hook", self.step
        return ("node", self.node) if self.call is None else ("call", self.call)

    def layer_name(self, statistics: PassStatistics) -> str:
        """The class of the module, the op of the node, or the name of the hook."""
        if self.is_hook:
            step = statistics.trace.steps[self.step]
            return step.hook.label if step.hook else str(step.on)
        return statistics.trace.ops[self.node] if self.call is None else statistics.module_class(self.call)


Segment = tuple[Gate, list[SizeChange]]
"""A gate, and the changes of the gradient from there to the next gate."""


def find_vanishing_or_exploding(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find chains of layers over which gradients vanish or explode, and single hooks that have such an effect.

    The gradients are compared at the gates of the pass (see ``find_gates``), which the whole gradient goes through. The
    change of size between two gates is the change of the norm or of the root mean square, the smaller of the two: the
    norm alone changes if a mean spreads one number over many, and the root mean square alone if the tensor becomes
    larger or smaller; neither is a fault.

    A chain vanishes or explodes if three conditions hold. The size changes by ``CHAIN_FACTOR``. It does so even without
    the layer that changes it most: a single layer that scales, normalises or averages is normal, and most transformers
    have one. The layers change it by ``LAYER_FACTOR`` on average: an untrained ResNet of 152 layers makes the gradient
    40,000 times as large, about a quarter more in each block, and learns well.

    A single hook that changes a gradient by ``CHAIN_FACTOR`` is a remark: it may be intended.
    """
    hook_changes = _list_hook_changes(statistics)
    segments = list(_split_segments(statistics, _select_gates(statistics), hook_changes))
    for kind, sign in _SIGNS.items():
        chain = _find_chain(segments, sign)
        if chain:
            yield _make_chain_finding(statistics, kind, sign, chain)
        elif kind == "vanishing":
            yield from [*find_shrinking_weights(statistics)] or find_faint_weights(statistics)
    for changes in hook_changes.values():
        for change in changes:
            if abs(change.log) >= math.log(CHAIN_FACTOR):
                yield _make_hook_finding(statistics, change)


def _select_gates(statistics: PassStatistics) -> list[Gate]:
    """Select the gates to compare: inside modules, with more than one number, and behind the scaling of a GradScaler.

    If no gate is inside a module, gates outside of modules are selected; if none has more than one number, all are.
    """
    scaled = {node for row in statistics.scales for node in row.at}
    gates = find_gates(statistics)
    last = max((i for i, gate in enumerate(gates) if not scaled.isdisjoint(gate.nodes_to_next)), default=-1)
    gates = gates[last + 1 :]
    gates = [gate for gate in gates if gate.node in statistics.trace.owners] or gates
    return [gate for gate in gates if gate.size > 1] or gates


def _list_hook_changes(statistics: PassStatistics) -> dict[int, list[SizeChange]]:
    """Node → the changes that its hooks made to the size of the gradient that arrives there."""
    changes: dict[int, list[SizeChange]] = {}
    for index, row in statistics.rows:
        if row.kind in CHANGING_KINDS and row.subject == "gradient" and row.effect != "kept" and row.node is not None:
            before, after = (math.hypot(*statistics.norms(values)) for values in (row.before, row.after))
            if 0 < before < math.inf and 0 < after < math.inf:
                log = math.log(after) - math.log(before)
                changes.setdefault(row.node, []).append(SizeChange(index, log, None, row.node, is_hook=True))
    return changes


def _split_segments(
    statistics: PassStatistics, gates: list[Gate], hook_changes: dict[int, list[SizeChange]]
) -> Iterator[Segment]:
    """Split the change between two gates into the changes by hooks; the remainder is the change by the layer."""
    for gate, following in pairwise(gates):
        hooks = hook_changes.get(gate.node, [])
        log = _log_change(gate, following) - sum([hook.log for hook in hooks])
        call = statistics.common_call(gate.nodes_to_next)
        yield gate, [*hooks, SizeChange(statistics.compute_steps[gate.node], log, call, gate.node)]
    yield from [(gate, []) for gate in gates[-1:]]


def _log_change(gate: Gate, following: Gate) -> float:
    """The smaller change of norm and root mean square, as a logarithm; 0 if one of them grows and the other falls."""
    norm = math.log(following.norm) - math.log(gate.norm)
    rms = norm - math.log(following.size / gate.size) / 2
    return 0.0 if norm * rms < 0 else min(norm, rms, key=abs)


def _find_chain(segments: list[Segment], sign: int) -> list[Segment]:
    """Find the segments over which the size changes most, and the gate at their end; empty if they are no finding."""
    total = lowest = most = 0.0
    low = first = last = 0
    for end, (_ignored, changes) in enumerate(segments, 1):
        for change in changes:
            total += sign * change.log
        if total < lowest:
            low, lowest = end, total
        if total - lowest > most:
            first, last, most = low, end, total - lowest
    if most < math.log(CHAIN_FACTOR):
        return []
    layers: dict[tuple[str, int], float] = {}
    for change in (change for _ignored, changes in segments[first:last] for change in changes):
        layers[change.layer] = layers.get(change.layer, 0.0) + sign * change.log
    counted = sum(abs(log) > _NEGLIGIBLE for log in layers.values())
    is_spread = most - max(layers.values()) >= math.log(CHAIN_FACTOR)
    return segments[first : last + 1] if is_spread and most >= counted * math.log(LAYER_FACTOR) else []


def _make_chain_finding(statistics: PassStatistics, kind: str, sign: int, chain: list[Segment]) -> PassFinding:
    """The finding for a chain, which names the kind of layer that contributes most."""
    (start, _ignored), (end, _ignored) = chain[0], chain[-1]
    by_name: dict[str, list[SizeChange]] = {}
    for change in (change for _ignored, changes in chain[:-1] for change in changes):
        by_name.setdefault(change.layer_name(statistics), []).append(change)
    logs = {name: sign * sum(change.log for change in changes) for name, changes in by_name.items()}
    name = max(logs, key=logs.__getitem__)
    count = len({change.layer for change in by_name[name]})
    first = next(change.step for change in by_name[name] if sign * change.log > 0)
    calls = list(dict.fromkeys(change.call for change in by_name[name] if change.call is not None))
    log = _log_inside(statistics, chain, calls) if calls else sign * logs[name]
    culprit = _(_EACH_LAYER[kind]).format(count=count, kind=name, factor=_format_factor(log / count))
    sizes = list(_describe_layer_sizes(statistics, calls, kind))
    ends = {"start": statistics.describe_location(start.node), "first": format_number(start.rms, 3)}
    ends |= {"end": statistics.describe_location(end.node), "last": format_number(end.rms, 3)}
    sentence = join_sentences([_(_CHAINS[kind]).format(whose=culprit, **ends), *sizes])
    return PassFinding(first, kind, sentence, is_by_weights=bool(sizes))


def _log_inside(statistics: PassStatistics, chain: list[Segment], calls: list[int]) -> float:
    """The change of the root mean square in some module calls, and in those that they make, as a logarithm."""
    outer, owners, total = set(calls), statistics.trace.owners, 0.0
    for (gate, changes), (following, _ignored) in pairwise(chain):
        call = changes[-1].call if changes[-1].call is not None else owners.get(gate.node)
        if not outer.isdisjoint(iter_enclosing_calls(statistics.trace, call)):
            total += math.log(following.rms) - math.log(gate.rms)
    return total


def _make_hook_finding(statistics: PassStatistics, change: SizeChange) -> PassFinding:
    """The remark on a hook that changes a gradient very much."""
    kind = "vanishing" if change.log < 0 else "exploding"
    hook = _("{hook} on {on}").format(hook=change.layer_name(statistics), on=statistics.trace.steps[change.step].on)
    sentence = _(_HOOKS[kind]).format(hook=hook, factor=_format_factor(change.log))
    return PassFinding(change.step, kind, sentence, "remark", effects=((change.step, None),))


def _format_factor(log: float) -> str:
    """Format the factor with this natural logarithm, even if the factor does not fit into a float."""
    return format_number(math.exp(log), 2) if abs(log) < _LARGEST_LOG else f"1e{log / math.log(10):+.0f}"


# -- layers that change the size of their inputs in the forward, too


def _describe_layer_sizes(statistics: PassStatistics, calls: Iterable[int], kind: str) -> Iterator[str]:
    """Say by how much linear layers change the size of what they are given, if it is as much as the gradient changes.

    Weights with a mean of 0 and the standard deviation s make n numbers of the size 1 to one of s · sqrt(n).
    """
    found = [call for call in calls if statistics.is_linear(call)]
    sizes = [size for call in found if (size := _measure_change(statistics, call)) is not None]
    if not sizes or len(sizes) < len(found) / 2:
        return
    mean = math.exp(math.fsum(map(math.log, sizes)) / len(sizes))
    if (kind == "vanishing" and mean <= 1 / _FACTOR) or (kind == "exploding" and mean >= _FACTOR):
        too = _("small") if kind == "vanishing" else _("large")
        text = _(
            "Their weights are too {too}: in the forward, each of them makes what it is given about {factor} times as "
            "large. With n inputs, a standard deviation of sqrt(2 / n) keeps the size behind a ReLU, as "
            "kaiming_normal_ does."
        )
        yield text.format(too=too, factor=format_number(mean, 2))


def _measure_change(statistics: PassStatistics, call: int) -> float | None:
    """Return the factor by which a call changes the root mean square of its only input; None if that is not known."""
    given, made = (_find_size(statistics, kind, call) for kind in ("call", "forward"))
    return made / given if given and made else None


def _find_size(statistics: PassStatistics, kind: str, call: int) -> float | None:
    index = statistics.find_only(kind, call)
    norm = None if index is None else statistics.norm(index)
    if index is None or norm is None or not math.isfinite(norm):
        return None
    return norm / math.sqrt(math.prod(statistics.trace.values[index][0]))
