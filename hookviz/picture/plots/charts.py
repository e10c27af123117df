"""The charts of series, which Matplotlib draws: bars of layers, curves and heat maps over passes, and losses."""

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from hookviz.picture.plots.figures import (
    BAR,
    COLORS,
    DASHES,
    FILLS,
    ROW,
    TROUBLE,
    label_of,
    link_columns,
    link_row,
    make_figure,
    make_norm,
    scale_axis,
    write_name,
)
from hookviz.picture.plots.series import Loss, Measure, Point, Series
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.values import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_POINTS = 5_000
"""Curves with more points than this are a picture inside the SVG."""


class Bars:
    """A bar for each layer in one pass, and a line from its smallest to its largest number in all passes.

    With several traces, the bars of a layer stand below each other; those of the first lead to steps.
    """

    def __init__(
        self, traces: Mapping[str, Sequence[Series]], pass_ids: Sequence[int], of: str, measure: Measure
    ) -> None:
        self._traces, self._pass_ids, self._measure = traces, pass_ids, measure
        self.names = list(dict.fromkeys(series.name for shown in traces.values() for series in shown))
        self.figure = make_figure(1.1 + ROW * len(self.names) * (1 + 0.6 * (len(traces) - 1)))
        self._axes = self.figure.subplots()
        values = [point.value for shown in traces.values() for series in shown for point in series.points]
        scale_axis(self._axes, "x", values, measure)
        for number in range(len(traces)):
            self._draw(number)
        self._axes.set_yticks(range(len(self.names)), [write_name(name) for name in self.names])
        self._axes.invert_yaxis()
        self._axes.set_xlabel(label_of(of, measure))
        if len(traces) > 1:
            self.figure.legend(
                [write_name(name) for name in traces], loc="outside upper center", ncols=len(traces), frameon=False
            )

    def _draw(self, number: int) -> None:
        """Draw the bars of a trace."""
        shown = {series.name: series for series in list(self._traces.values())[number]}
        height = 0.75 / len(self._traces)
        places = [place - 0.375 + height * (number + 0.5) for place in range(len(self.names))]
        points = [shown[name].at(self._pass_ids[number]) if name in shown else None for name in self.names]
        lengths = [point.value if point and math.isfinite(point.value) else 0 for point in points]
        color, pattern = FILLS[number % len(FILLS)]
        self._axes.barh(places, lengths, color=color, hatch=pattern, edgecolor="white", height=height * 0.95)
        for row, (name, place, point) in enumerate(zip(self.names, places, points, strict=True)):
            if name in shown:
                _draw_range(self._axes, place, shown[name])
            if point is not None and not number:
                link_row(self._axes, row, point.step)
            self._note_trouble(place, point)

    def _note_trouble(self, place: float, point: Point | None) -> None:
        """Write what has no bar: 0, NaN or Inf."""
        if point is not None and self._measure != "mean" and (not point.value or not math.isfinite(point.value)):
            within = ("axes fraction", "data")
            text = format_number(point.value)
            self._axes.annotate(text, (0.01, place), xycoords=within, va="center", color=TROUBLE)


def _draw_range(axes: "Axes", place: float, series: Series) -> None:
    finite = [value for _pass, _step, value in series.points if math.isfinite(value) and value]
    if len(finite) > 1:
        axes.plot([min(finite), max(finite)], [place, place], color="black", linewidth=1.2, marker="|", markersize=6)


def draw_heat_map(trace: TraceData, series: Sequence[Series], of: str, measure: Measure) -> "Figure":
    """Draw a row for each layer and a column for each pass; what is 0, NaN or Inf has colours of its own."""
    figure = make_figure(1.1 + ROW * len(series))
    axes = figure.subplots()
    numbers = sorted({trace.pass_number(point.pass_id) for one in series for point in one.points})
    columns = {number: column for column, number in enumerate(numbers)}
    cells = [[math.nan] * len(numbers) for _ignored in series]
    for row, one in zip(cells, series, strict=True):
        for point in one.points:
            row[columns[trace.pass_number(point.pass_id)]] = point.value
    norm, palette = make_norm([value for row in cells for value in row], measure)
    down = [place - 0.5 for place in range(len(series) + 1)]
    mesh = axes.pcolormesh(list_edges(numbers), down, cells, norm=norm, cmap=palette, rasterized=True)
    axes.set_yticks(range(len(series)), [write_name(one.name) for one in series])
    axes.invert_yaxis()
    axes.set_xlabel(_("pass"))
    link_columns(axes, _find_steps(trace, series))
    figure.colorbar(mesh, label=label_of(of, measure))
    return figure


def list_edges(numbers: Sequence[int]) -> list[float]:
    """Return where the columns of passes with these numbers begin, and where the last one ends.

    A pass that is not in the trace is covered by the one before it.
    """
    return [*(number - 0.5 for number in numbers), numbers[-1] + 0.5]


def _find_steps(trace: TraceData, series: Sequence[Series]) -> dict[int, int]:
    """Return the number of each pass → its first step that is shown."""
    steps: dict[int, int] = {}
    for one in series:
        for point in one.points:
            number = trace.pass_number(point.pass_id)
            steps[number] = min(point.step, steps.get(number, point.step))
    return steps


def draw_curves(trace: TraceData, series: Sequence[Series], of: str, measure: Measure) -> "Figure":
    """Draw a curve for each layer over the passes: early layers are dark, late ones are light."""
    figure = make_figure(max(3.2, 0.8 + 0.2 * len(series)))
    axes = figure.subplots()
    is_large = sum(len(one.points) for one in series) > MAX_POINTS
    palette = importlib.import_module("matplotlib").colormaps[COLORS]
    for number, one in enumerate(series):
        axes.plot(
            [trace.pass_number(point.pass_id) for point in one.points],
            [point.value for point in one.points],
            color=palette(0.9 * number / max(len(series) - 1, 1)),
            linestyle=DASHES[number % len(DASHES)],
            label=write_name(one.name),
            rasterized=is_large,
        )
    scale_axis(axes, "y", [point.value for one in series for point in one.points], measure)
    axes.set_xlabel(_("pass"))
    axes.set_ylabel(label_of(of, measure))
    link_columns(axes, _find_steps(trace, series))
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def draw_losses(trace: TraceData, losses: Sequence[Loss]) -> "Figure":
    """Draw the loss of each pass, and the learning rate if it changes."""
    figure = make_figure(3.2)
    axes = figure.subplots()
    numbers = [trace.pass_number(loss.pass_id) for loss in losses]
    axes.plot(numbers, [loss.value for loss in losses], color=BAR)
    axes.set_xlabel(_("pass"))
    axes.set_ylabel(_("loss"))
    link_columns(axes, {trace.pass_number(loss.pass_id): loss.step for loss in losses})
    rates = [loss.rate for loss in losses]
    if len({rate for rate in rates if rate is not None}) > 1:
        other = axes.twinx()
        other.plot(numbers, [math.nan if rate is None else rate for rate in rates], color=TROUBLE, linestyle="--")
        other.set_ylabel(_("learning rate"))
    return figure
