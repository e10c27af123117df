"""Say whether the layers of a chain change the size of their inputs in the forward, too: then their weights do it."""

import math
from collections.abc import Iterable, Iterator

from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import _
from hookviz.trace.values import format_number

_LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")
_FACTOR = 3
"""Weights change the size if each layer does by at least this factor, on average."""


def describe_layer_sizes(statistics: PassStatistics, calls: Iterable[int], kind: str) -> Iterator[str]:
    """Say by how much linear layers change the size of what they are given, if it is as much as the gradient changes.

    Weights with a mean of 0 and the standard deviation s make n numbers of the size 1 to one of s · sqrt(n).
    """
    found = [call for call in calls if statistics.module_class(call) in _LAYERS]
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
