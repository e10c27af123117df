"""What a plot shows: a number of each parameter in each pass, such as the norm of its gradient."""

import math
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

from hookviz.trace import HOOK_KINDS, StepRow, TraceData
from hookviz.trace.values import Value

Measure = Literal["norm", "rms", "zeros"]
"""Of a gradient as hooks left it: its norm, the root mean square of its numbers, or the share of them that are 0."""

MEASURES: tuple[Measure, ...] = get_args(Measure)


class Point(NamedTuple):
    """A number, where it belongs."""

    pass_id: int
    step: int
    value: float
    """NaN if the gradient holds NaN, Inf if it holds Inf."""


class Series(NamedTuple):
    """The numbers of one parameter, in the order of the passes."""

    name: str
    points: list[Point]


def list_series(trace: TraceData, measure: Measure) -> list[Series]:
    """Return the series of all parameters, in the order of the model; of all leaves if no module is there."""
    found: dict[str, list[Point]] = {name: [] for name in trace.lookup.leaf_names.values()}
    for name, point in _list_gradients(trace, _READERS[measure]):
        found[name].append(point)
    return [Series(name, points) for name, points in found.items() if points]


def _list_gradients(trace: TraceData, read: Callable[[Value], float | None]) -> Iterator[tuple[str, Point]]:
    """Yield (name of a leaf, its number) for each pass, in the order in which the gradients are ready."""
    leaves = trace.lookup.leaf_names
    owned = {node: name for node, name in leaves.items() if node in trace.owners}
    names = owned or leaves
    for pass_id in trace.lookup.passes:
        latest: dict[int, tuple[int, int]] = {}
        for step in trace.lookup.steps(pass_id):
            row = trace.rows[step]
            if row.node in names and _leaves_gradient(row):
                latest[row.own_node] = step, row.after  # type: ignore[assignment]
        for node, (step, index) in latest.items():
            value = read(Value(*trace.values[index]))
            if value is not None:
                yield names[node], Point(pass_id, step, value)


def _leaves_gradient(row: StepRow) -> bool:
    """Whether the value after a step is the gradient of its node, before it is added to ``.grad``."""
    is_gradient = row.kind in ("seed", "arrive", "aliased", "unknown_hook") or (
        row.kind in HOOK_KINDS and row.kind != "post_accumulate_hook" and row.subject == "gradient"
    )
    return is_gradient and isinstance(row.after, int)


def _find_norm(value: Value) -> float | None:
    return None if value.note is not None or 0 in value.shape else value.norm


def _find_rms(value: Value) -> float | None:
    norm = _find_norm(value)
    return None if norm is None else norm / math.sqrt(math.prod(value.shape))


def _find_zeros(value: Value) -> float | None:
    known = value.zero if _find_norm(value) is not None else None
    return None if known is None else known / math.prod(value.shape)


_READERS: dict[Measure, Callable[[Value], float | None]] = {
    "norm": _find_norm,
    "rms": _find_rms,
    "zeros": _find_zeros,
}


class Loss(NamedTuple):
    """The number at which a pass starts, and the learning rate of the next step of an optimizer."""

    pass_id: int
    step: int
    value: float
    rate: float | None


def list_losses(trace: TraceData) -> list[Loss]:
    """Return the losses of the passes that start at one number."""
    rates: dict[int, float | None] = {}
    for update in trace.updates:
        known = [rate for rate in update.rates if rate is not None]
        rates.setdefault(trace.rows[update.step].pass_id, known[0] if known else None)
    return [
        Loss(pass_id, trace.lookup.steps(pass_id)[0], math.nan if loss is None else loss, rates.get(pass_id))
        for pass_id, loss in trace.losses.items()
        if len(trace.lookup.steps(pass_id))
    ]
