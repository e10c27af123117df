"""Find weights whose gradients shrink from layer to layer: the layers near the input learn hardly anything."""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.support.messages import _, join_sentences
from hookviz.trace.values import format_number

FEWEST = 5
"""A chain has at least this many weights."""
LAYER_FACTOR = 3
"""From each of them to the next, the gradient falls by at least this factor."""
CHAIN_FACTOR = 1e3
"""Over the chain it falls by at least this factor."""


class WeightGradient(NamedTuple):
    """The gradient of one weight in a pass."""

    step: int
    name: str
    rms: float
    """The root mean square of its numbers."""


def find_shrinking_weights(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find a chain of weights, each of which gets a much smaller gradient than the one before it in the pass.

    With sigmoid layers it falls by about the factor ten a layer: a quarter from the sigmoid, the rest from the weights.
    The factor of a single layer is no fault, and that of many layers with small factors is for the chains of gates.
    """
    chain = _find_chain(list_weight_gradients(statistics))
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
    """List the nodes of an op that compute between the first and the last weight of a chain."""
    steps = statistics.compute_steps.items()
    ops = statistics.trace.ops
    return [node for node, step in steps if chain[0].step < step < chain[-1].step and ops[node].startswith(op)]


def list_weight_gradients(statistics: PassStatistics) -> list[WeightGradient]:
    """List the gradients of tensors with two dimensions or more, in the order in which they arrive."""
    names = statistics.trace.lookup.leaf_names
    found = []
    for step, row in statistics.rows:
        if row.kind == "arrive" and isinstance(row.after, int) and row.node in names:
            shape, norm = statistics.trace.values[row.after][0], statistics.norm(row.after)
            if len(shape) > 1 and norm and math.isfinite(norm):
                found.append(WeightGradient(step, names[row.own_node], norm / math.sqrt(math.prod(shape))))
    return found


def _find_chain(weights: list[WeightGradient]) -> list[WeightGradient]:
    """Return the longest run of weights that each get a much smaller gradient than the one before."""
    best: list[WeightGradient] = []
    run: list[WeightGradient] = []
    for weight in weights:
        run = [*run, weight] if run and run[-1].rms >= LAYER_FACTOR * weight.rms else [weight]
        best = max(best, run, key=len)
    return best
