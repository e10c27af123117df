"""Find sigmoids, tanhs and softmaxes that let almost nothing of a gradient through: their outputs lie at limits."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from hookviz.analysis.findings.ops import get_op
from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.support.messages import _, join_sentences
from hookviz.trace.values import flatten_numbers, format_number

LEAST_FACTOR = 1e-4
"""What is left of the gradient behind a saturated function is less than this part of it."""
_DISTANCE = 1e-3
"""A number that is so near to a limit counts as being there."""
_LIMITS = {"SigmoidBackward0": (0.0, 1.0), "TanhBackward0": (-1.0, 1.0), "SoftmaxBackward0": (0.0, 1.0)}
"""Op → the limits of what it makes."""
_STEEP = ("BinaryCrossEntropy", "Log")
"""Ops whose slope is as large as that of a sigmoid, or of a softmax, before them is small: together they are not flat.
"""
_NAMES = {"SigmoidBackward0": "sigmoid", "TanhBackward0": "tanh", "SoftmaxBackward0": "softmax"}


class Flat(NamedTuple):
    """A function that is flat where its outputs are."""

    factor: float
    """What is left of the norm of the gradient."""
    step: int
    node: int
    op: str


def find_saturation(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find the function that leaves least of the gradient; a remark, since a gate may be closed on purpose.

    One that leaves exactly 0 is another finding.
    """
    flat = sorted(list_flat(statistics))
    if not flat:
        return
    first = flat[0]
    names = {"on": statistics.describe_node(first.node), "factor": format_number(first.factor, 2)}
    text = _(
        "{on} leaves {factor} of the gradient that it gets: where that is large, its outputs lie at the limits of "
        "{op}, where it is flat."
    )
    sentences = [text.format(op=_NAMES[first.op], **names), *_count_at_limits(statistics, first)]
    if len(flat) > 1:
        more = _("{count} more ops of this pass leave less than {least} of it.")
        sentences.append(more.format(count=f"{len(flat) - 1:,}", least=format_number(LEAST_FACTOR)))
    advice = _("Look at what comes in: smaller weights, a norm before it, or inputs of another scale.")
    finding = PassFinding(first.step, "saturated", join_sentences(sentences), "remark", nodes=(first.node,))
    yield finding._replace(advice=advice, effects=tuple((one.step, None) for one in flat))


def list_flat(statistics: PassStatistics) -> Iterator[Flat]:
    """Yield the sigmoids, tanhs and softmaxes that let almost nothing of a gradient through, but not exactly 0."""
    for node, step in statistics.compute_steps.items():
        op = statistics.trace.ops[node]
        if op not in _LIMITS or _is_steep(statistics, node):
            continue
        row = statistics.trace.rows[step]
        before, after = (math.hypot(*statistics.norms(values)) for values in (row.before, row.after))
        is_flat = 0 < after < LEAST_FACTOR * before < math.inf
        if is_flat and (op != "SoftmaxBackward0" or _is_one_hot(statistics, node)):
            yield Flat(after / before, step, node, op)


def _is_steep(statistics: PassStatistics, node: int) -> bool:
    """Whether an op takes the result of a function whose slope is large where that of the function is small."""
    users = (get_op(statistics.trace, user) for user in statistics.users.get(node, ()))
    return any(user in _STEEP for user in users)


def _is_one_hot(statistics: PassStatistics, node: int) -> bool:
    """Whether a softmax chose one number of each row; equal gradients in a row make it send little, too."""
    known = _list_results(statistics, node)
    return bool(known) and all(_is_at_limit(one, "SoftmaxBackward0") for one in known)


def _list_results(statistics: PassStatistics, node: int) -> list[complex]:
    """List the outputs that an op saved, if they were kept."""
    result = statistics.saved_tensor(node, "result")
    numbers = None if result is None else result.tolist()
    return [] if numbers is None else list(flatten_numbers(numbers))


def _is_at_limit(number: complex, op: str) -> bool:
    return min(abs(number - limit) for limit in _LIMITS[op]) < _DISTANCE


def _count_at_limits(statistics: PassStatistics, flat: Flat) -> Iterator[str]:
    """Say how many outputs lie at a limit, if their numbers are known."""
    known = _list_results(statistics, flat.node)
    if known:
        near = sum(_is_at_limit(one, flat.op) for one in known)
        text = _("{count} of {total} outputs are within {distance} of a limit.")
        yield text.format(count=f"{near:,}", total=f"{len(known):,}", distance=format_number(_DISTANCE))
