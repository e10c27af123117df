"""Find weights that get hardly any gradient: less from layer to layer, or because a function is flat on the way."""

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from hookviz.analysis.findings.ops import VIEWS, get_op
from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.analysis.findings.values.saturation import Flat, list_flat
from hookviz.support.messages import _, join_first, join_sentences
from hookviz.trace.values import format_number

FEWEST = 5
"""A chain has at least this many weights."""
LAYER_FACTOR = 3
"""From each of them to the next, the gradient falls by at least this factor."""
CHAIN_FACTOR = 1e3
"""Over the chain it falls by at least this factor."""
FEWEST_WEIGHTS = 3
FAINT = 1e-10
"""A weight gets hardly any gradient if its root mean square is below this part of the median of all weights."""


class WeightGradient(NamedTuple):
    """The gradient of one weight in a pass."""

    step: int
    node: int
    name: str
    rms: float
    """The root mean square of its numbers."""


def find_shrinking_weights(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find a chain of weights, each of which gets a much smaller gradient than the one before it, which lies behind it.

    With sigmoid layers it falls by about the factor ten a layer: a quarter from the sigmoid, the rest from the weights.
    The factor of a single layer is no fault, and that of many layers with small factors is for the chains of gates.
    """
    chain = _find_chain(statistics, _list_weight_gradients(statistics))
    if len(chain) >= FEWEST and chain[0].rms / chain[-1].rms >= CHAIN_FACTOR:
        text = _(
            "The gradient vanishes: over {count} layers, from {start} to {end}, the root mean square of the gradient "
            "of the weights falls from {first} to {last}, by a factor of {smallest} or more from each to the next."
        )
        smallest = min(one.rms / other.rms for one, other in pairwise(chain))
        ends = {"start": chain[0].name, "end": chain[-1].name}
        ends |= {"first": format_number(chain[0].rms, 3), "last": format_number(chain[-1].rms, 3)}
        sentence = text.format(count=len(chain), smallest=format_number(math.floor(smallest), 3), **ends)
        flat = _list_between(statistics, chain, "SigmoidBackward")
        if len(flat) >= len(chain) - 2:
            more = _(
                "Between them are {count} sigmoids, whose slope is 0.25 or less: a ReLU or a tanh lets more through."
            )
            sentence = join_sentences([sentence, more.format(count=f"{len(flat):,}")])
        yield PassFinding(chain[-1].step, "vanishing", sentence, nodes=tuple(flat[:1]))


def _list_between(statistics: PassStatistics, chain: list[WeightGradient], op: str) -> list[int]:
    """List the nodes of an op through which the gradient comes from the first weight of a chain to the last one."""
    nodes = [node for node in _list_before(statistics, chain[0].node) if statistics.trace.ops[node].startswith(op)]
    return [node for node in nodes if chain[-1].node in statistics.list_behind(node)]


def _list_before(statistics: PassStatistics, weight: int) -> set[int]:
    """List the nodes of which the op that takes a weight, or a view of it, was computed."""
    users = statistics.users.get(weight, [])
    while len(users) == 1 and get_op(statistics.trace, users[0]) in VIEWS:
        users = statistics.users.get(users[0], [])
    return set().union(*(statistics.list_behind(user) for user in users))


def _list_weight_gradients(statistics: PassStatistics) -> list[WeightGradient]:
    """List the gradients of tensors with two dimensions or more, in the order in which they arrive."""
    names = statistics.trace.lookup.leaf_names
    found = []
    for step, row in statistics.rows:
        if row.kind == "arrive" and isinstance(row.after, int) and row.node in names:
            shape, norm = statistics.trace.values[row.after][0], statistics.norm(row.after)
            if len(shape) > 1 and norm and math.isfinite(norm):
                found.append(WeightGradient(step, row.node, names[row.node], norm / math.sqrt(math.prod(shape))))
    return found


def _find_chain(statistics: PassStatistics, weights: list[WeightGradient]) -> list[WeightGradient]:
    """Return the longest run of weights that each get a much smaller gradient than the one before, and lie behind it.

    Weights of heads beside each other are no chain.
    """
    best: list[WeightGradient] = []
    run: list[WeightGradient] = []
    for weight in weights:
        is_smaller = bool(run) and run[-1].rms >= LAYER_FACTOR * weight.rms
        is_next = is_smaller and weight.node in _list_before(statistics, run[-1].node)
        run = [*run, weight] if is_next else [weight]
        best = max(best, run, key=len)
    return best


def find_faint_weights(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find weights with hardly any gradient: a warning if a flat function is shown, else a remark."""
    weights = _list_weight_gradients(statistics)
    if len(weights) < FEWEST_WEIGHTS:
        return
    usual = median(weight.rms for weight in weights)
    faint = [weight for weight in weights if weight.rms < FAINT * usual]
    if not faint:
        return
    text = _(
        "Hardly any gradient comes to {names}: a root mean square of {rms}, where the median of all weights is {usual}."
    )
    numbers = {"rms": format_number(faint[0].rms, 3), "usual": format_number(usual, 3)}
    sentence = text.format(names=join_first([weight.name for weight in faint]), **numbers)
    flat = _find_flat(statistics, faint)
    if flat is None:
        yield PassFinding(faint[0].step, "vanishing", sentence, "remark")
        return
    sentence = join_sentences([sentence, _describe_flat(statistics, flat)])
    yield PassFinding(faint[0].step, "vanishing", sentence, "warning", nodes=(flat.node,))


def _find_flat(statistics: PassStatistics, faint: list[WeightGradient]) -> Flat | None:
    """Return the function that lets nothing of the gradient of some weights through, as far as it goes there."""
    leaves = {weight.node for weight in faint}
    for flat in sorted(list_flat(statistics)):
        if flat.factor < FAINT and leaves <= statistics.list_behind(flat.node):
            return flat
    return None


def _describe_flat(statistics: PassStatistics, flat: Flat) -> str:
    text = _("On its way, {on} leaves {factor} of it: its outputs lie at its limits, where it is flat.")
    return text.format(on=statistics.describe_node(flat.node), factor=format_number(flat.factor, 2))
