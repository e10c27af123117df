"""What a plot shows: a number of each parameter or module in each pass, such as the norm of a gradient."""

import math
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, get_args

from hookviz.support.messages import _
from hookviz.trace import HOOK_KINDS, StepRow, TraceData
from hookviz.trace.histogram_rows import HistogramRow
from hookviz.trace.values import Value, as_tuple

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
    is_sampled: bool = False
    """Whether it is known from a sample of the numbers of a tensor only."""


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


def list_series(trace: TraceData, of: str, measure: Measure, layers: Sequence[str] = ("*",)) -> list[Series]:
    """Return the series of all leaves, or modules, whose names match a pattern, in the order of the model.

    Raises:
        ValueError: nothing was recorded that has this measure.
    """
    if measure == "update" and of != "weights":
        raise ValueError(_('The measure "update" is one of weights: write of="weights".'))
    gradients = _list_gradients(trace) if of == "gradients" else {}
    if of == "gradients" and not gradients:
        raise ValueError(_("There is nothing to plot: no gradient of a leaf was recorded."))
    needs_rows = of != "gradients" or measure not in LEAVES_MEASURES
    rows = {each.name: each.rows for each in list_distributions(trace, of)} if needs_rows or trace.histograms else {}
    if measure == "update" and not any(row.move is not None for each in rows.values() for row in each.values()):
        raise ValueError(_("There is nothing to plot: no optimizer took a step after a pass of this recording."))
    names = dict.fromkeys([*gradients, *rows])
    found = [
        Series(name, [*_measure_each(trace, gradients.get(name, {}), rows.get(name, {}), measure)]) for name in names
    ]
    return [series for series in found if series.points and _matches(series.name, layers)]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _measure_each(
    trace: TraceData, values: dict[int, tuple[int, int]], rows: dict[int, HistogramRow], measure: Measure
) -> Iterator[Point]:
    """Yield the points of one series: from the value of a tensor where that tells, else from its histogram."""
    for pass_id in sorted({*values, *rows}):
        row = rows.get(pass_id)
        step, index = values[pass_id] if pass_id in values else _find_output(trace, rows[pass_id])
        exact = None if index is None else _READERS[measure](Value(*trace.values[index]))
        if exact is not None:
            yield Point(pass_id, step, exact)
        elif row is not None and (known := _ROW_READERS[measure](row)) is not None:
            yield Point(pass_id, step, known, is_sampled=row.read + row.nonfinite < row.total)


def _find_output(trace: TraceData, row: HistogramRow) -> tuple[int, int | None]:
    """Return the step of a row, and the value of its tensor if that step has it: an output."""
    first = next(iter(as_tuple(trace.rows[row.step].after)), None) if row.of == "outputs" else None
    is_same = first is not None and math.prod(trace.values[first][0]) == row.total
    return row.step, first if is_same else None


def list_distributions(trace: TraceData, of: str, layers: Sequence[str] = ("*",)) -> list[Distributions]:
    """Return the distributions of all leaves, or modules, whose names match a pattern.

    Raises:
        ValueError: the trace has no histograms.
    """
    if not trace.histograms:
        raise ValueError(_("This plot needs histograms: write record(..., histograms=True)."))
    names = trace.lookup.leaf_names if of != "outputs" else {}
    outer = {call.parent for call in trace.calls}
    found: dict[str, dict[int, HistogramRow]] = {name: {} for name in names.values()}
    for row in trace.histograms:
        if row.of != of:
            continue
        step = trace.rows[row.step]
        name = _name_module(trace, step, outer) if of == "outputs" else names.get(step.own_node)
        if name is not None:
            found.setdefault(name, {})[step.pass_id] = row
    return [Distributions(name, rows) for name, rows in found.items() if rows and _matches(name, layers)]


def _name_module(trace: TraceData, step: StepRow, outer: set[int | None]) -> str | None:
    """Return the name of the module of a step.

    None if it calls others, whose outputs say more, or if the call belongs to no pass, as in an evaluation; without any
    pass, all calls count.
    """
    if step.call is None or step.call in outer:
        return None
    call = trace.calls[step.call]
    belongs = step.pass_id < len(trace.roots) and call.mode not in ("no_grad", "inference")
    if call.recomputed or (trace.roots and not belongs):
        return None
    return trace.module(call.module)


def _list_gradients(trace: TraceData) -> dict[str, dict[int, tuple[int, int]]]:
    """Return name of a leaf → pass → (step, value): its gradient as hooks left it, before it is added to ``.grad``."""
    names = trace.lookup.leaf_names
    found: dict[str, dict[int, tuple[int, int]]] = {name: {} for name in names.values()}
    for pass_id in trace.lookup.passes:
        for step in trace.lookup.steps(pass_id):
            row = trace.rows[step]
            if row.node in names and _leaves_gradient(row):
                found[names[row.own_node]][pass_id] = step, row.after  # type: ignore[assignment]
    return {name: values for name, values in found.items() if values}


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


def _find_mean(value: Value) -> float | None:
    return None if _find_norm(value) is None else value.mean


def _find_deviation(value: Value) -> float | None:
    rms, mean = _find_rms(value), _find_mean(value)
    return None if rms is None or mean is None else math.sqrt(max(rms**2 - mean**2, 0))


def _find_zeros(value: Value) -> float | None:
    norm = _find_norm(value)
    if norm is None or not math.isfinite(norm):
        return norm
    return None if value.zero is None else value.zero / math.prod(value.shape)


def _find_nothing(_value: Value) -> None:
    """Return None: a value does not tell."""


_READERS: dict[Measure, Callable[[Value], float | None]] = {
    "norm": _find_norm,
    "rms": _find_rms,
    "mean_abs": _find_nothing,
    "mean": _find_mean,
    "std": _find_deviation,
    "zeros": _find_zeros,
    "update": _find_nothing,
}


def _finite_or_nan(value: float, row: HistogramRow) -> float:
    return math.nan if row.nonfinite else value


_ROW_READERS: dict[Measure, Callable[[HistogramRow], float | None]] = {
    "norm": lambda row: _finite_or_nan(row.rms * math.sqrt(row.total), row),
    "rms": lambda row: _finite_or_nan(row.rms, row),
    "mean_abs": lambda row: _finite_or_nan(row.mean_abs, row),
    "mean": lambda row: _finite_or_nan(row.mean, row),
    "std": lambda row: _finite_or_nan(row.std, row),
    "zeros": lambda row: _finite_or_nan(row.zeros, row),
    "update": lambda row: row.move / row.rms if row.move is not None and row.rms else None,
}


class Loss(NamedTuple):
    """The number at which a pass starts."""

    pass_id: int
    step: int
    value: float


def list_losses(trace: TraceData) -> list[Loss]:
    """Return the losses of the passes that start at one number."""
    return [
        Loss(pass_id, trace.lookup.steps(pass_id)[0], math.nan if loss is None else loss)
        for pass_id, loss in trace.losses.items()
        if len(trace.lookup.steps(pass_id))
    ]


def list_rates(trace: TraceData) -> dict[str, dict[int, float]]:
    """Return the learning rates: name of the optimizer, and the group if it has several → pass → rate."""
    found: dict[str, dict[int, float]] = {}
    for update in trace.updates:
        row = trace.rows[update.step]
        optimizer = trace.optimizer(row.optimizer)
        for number, rate in enumerate(update.rates):
            name = (
                optimizer
                if len(update.rates) == 1
                else _("{optimizer}, group {number}").format(optimizer=optimizer, number=number)
            )
            if rate is not None:
                found.setdefault(name, {})[row.pass_id] = rate
    return found
