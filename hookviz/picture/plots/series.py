"""What a plot shows: a number of each parameter or module in each pass, such as the norm of a gradient."""

import math
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, get_args

from hookviz.support.messages import _
from hookviz.trace import HOOK_KINDS, StepRow, TraceData
from hookviz.trace.histogram_rows import HistogramRow
from hookviz.trace.values import Value

Measure = Literal["norm", "rms", "mean_abs", "mean", "std", "zeros", "update"]
"""Norm, root mean square, mean absolute value, mean, standard deviation, the share of zeros; or of a weight, how far
an optimizer's step moved it, divided by its own root mean square."""

MEASURES: tuple[Measure, ...] = get_args(Measure)
LEAVES_MEASURES: tuple[Measure, ...] = ("norm", "rms", "zeros")
"""What is known of the gradients of leaves without histograms."""


class Point(NamedTuple):
    """A number, where it belongs."""

    pass_id: int
    step: int
    value: float
    """NaN if the tensor holds NaN, Inf if it holds Inf."""


class Series(NamedTuple):
    """The numbers of one parameter or module, in the order of the passes."""

    name: str
    points: list[Point]

    def at(self, pass_id: int) -> Point | None:
        """Return the point of a pass; None if there is none."""
        return next((point for point in self.points if point.pass_id == pass_id), None)


class Distributions(NamedTuple):
    """How the numbers of one parameter or module are distributed in each pass."""

    name: str
    rows: dict[int, HistogramRow]
    """Pass → its row, in the order of the passes."""


def list_series(trace: TraceData, of: str, measure: Measure, layers: str = "*") -> list[Series]:
    """Return the series of all parameters, or modules, whose names match a pattern, in the order of the model.

    Of gradients, norms and zeros are known without histograms.

    Raises:
        ValueError: nothing was recorded that has this measure.
    """
    if measure == "update" and of != "weights":
        raise ValueError(_('The measure "update" is one of weights: write of="weights".'))
    if of == "gradients" and measure in _READERS:
        found = _collect(trace, _list_gradients(trace, _READERS[measure]))
        if not found:
            raise ValueError(_("There is nothing to plot: no gradient of a leaf was recorded."))
    else:
        found = [_make_series(each, _ROW_READERS[measure]) for each in list_distributions(trace, of)]
    return [series for series in found if series.points and fnmatchcase(series.name, layers)]


def _make_series(each: Distributions, read: Callable[[HistogramRow], float | None]) -> Series:
    known = ((pass_id, row.step, read(row)) for pass_id, row in each.rows.items())
    return Series(each.name, [Point(pass_id, step, value) for pass_id, step, value in known if value is not None])


def list_distributions(trace: TraceData, of: str, layers: str = "*") -> list[Distributions]:
    """Return the distributions of all parameters, or modules, whose names match a pattern.

    Raises:
        ValueError: the trace has no histograms.
    """
    if not trace.histograms:
        raise ValueError(_("This plot needs histograms: write record(..., histograms=True)."))
    names = _name_leaves(trace) if of != "outputs" else {}
    outer = {call.parent for call in trace.calls}
    found: dict[str, dict[int, HistogramRow]] = {name: {} for name in names.values()}
    for row in trace.histograms:
        if row.of != of:
            continue
        step = trace.rows[row.step]
        name = _name_module(trace, step, outer) if of == "outputs" else names.get(step.own_node)
        if name is not None:
            found.setdefault(name, {})[step.pass_id] = row
    return [Distributions(name, rows) for name, rows in found.items() if rows and fnmatchcase(name, layers)]


def _name_module(trace: TraceData, step: StepRow, outer: set[int | None]) -> str | None:
    """Return the name of the module of a step; None if it calls others, whose outputs say more."""
    return None if step.call is None or step.call in outer else trace.module(trace.calls[step.call].module)


def _name_leaves(trace: TraceData) -> dict[int, str]:
    """Return node → name of all parameters of modules; of all leaves if there is no module."""
    leaves = trace.lookup.leaf_names
    return {node: name for node, name in leaves.items() if node in trace.owners} or leaves


def _collect(trace: TraceData, named: Iterator[tuple[str, Point]]) -> list[Series]:
    found: dict[str, list[Point]] = {name: [] for name in _name_leaves(trace).values()}
    for name, point in named:
        found[name].append(point)
    return [Series(name, points) for name, points in found.items() if points]


def _list_gradients(trace: TraceData, read: Callable[[Value], float | None]) -> Iterator[tuple[str, Point]]:
    """Yield (name of a leaf, its number) for each pass, in the order in which the gradients are ready."""
    names = _name_leaves(trace)
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


def _finite_or_nan(value: float, row: HistogramRow) -> float:
    return math.nan if row.nonfinite else value


_ROW_READERS: dict[Measure, Callable[[HistogramRow], float | None]] = {
    "norm": lambda row: _finite_or_nan(row.rms * math.sqrt(row.total), row),
    "rms": lambda row: _finite_or_nan(row.rms, row),
    "mean_abs": lambda row: _finite_or_nan(row.mean_abs, row),
    "mean": lambda row: _finite_or_nan(row.mean, row),
    "std": lambda row: _finite_or_nan(row.std, row),
    "zeros": lambda row: row.zeros,
    "update": lambda row: row.move / row.rms if row.move is not None and row.rms else None,
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
