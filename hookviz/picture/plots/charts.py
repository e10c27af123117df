"""The charts of series, which Matplotlib draws: bars of layers, curves and heat maps over passes, and losses."""

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hookviz.picture.plots.figures import (
    BAR,
    COLORS,
    DASHES,
    FILLS,
    ROW,
    ROW_OF_OTHERS,
    color_cells,
    explain_colors,
    label_of,
    link_columns,
    link_row,
    list_edges,
    make_figure,
    make_norm,
    scale_axis,
    show_passes,
    write_name,
)
from hookviz.picture.plots.series import Loss, Measure, Point, Series
from hookviz.picture.styles import AMBER, NONFINITE
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.values import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAMED = 24
"""Of more layers than this, some are named beside their curves."""
MAX_MARKERS = 40
"""Up to so many passes, each has a dot."""
MAX_POINTS = 5_000
"""Curves with more points than this are a picture inside the SVG."""


class Bars:
    """A bar for each layer in one pass, and a line from its smallest to its largest number other than 0 in all passes.

    With several traces, the bars of a layer stand below each other; those of the first lead to steps.
    """

    def __init__(
        self, traces: Mapping[str, Sequence[Series]], pass_ids: Sequence[int], of: str, measure: Measure
    ) -> None:
        self._traces, self._pass_ids, self._measure = traces, pass_ids, measure
        self.names = list(dict.fromkeys(series.name for shown in traces.values() for series in shown))
        self.figure = make_figure(1.1 + ROW * len(self.names) * (1 + ROW_OF_OTHERS * (len(traces) - 1)))
        self._axes = self.figure.subplots()
        everything = [series for shown in traces.values() for series in shown]
        scale_axis(self._axes, "x", [point.value for series in everything for point in series.points], measure)
        bars = [self._draw(number) for number in range(len(traces))]
        self._axes.set_yticks(range(len(self.names)), [write_name(name) for name in self.names])
        self._axes.margins(y=0.01)
        self._axes.invert_yaxis()
        self._axes.set_xlabel(label_of(of, measure, everything))
        if len(traces) > 1:
            labels = [write_name(name) for name in traces]
            self.figure.legend(bars, labels, loc="outside upper center", ncols=len(traces), frameon=False)

    def _draw(self, number: int) -> Any:
        """Draw the bars of a trace, and return them."""
        shown = {series.name: series for series in list(self._traces.values())[number]}
        height = 0.75 / len(self._traces)
        places = [place - 0.375 + height * (number + 0.5) for place in range(len(self.names))]
        points = [shown[name].at(self._pass_ids[number]) if name in shown else None for name in self.names]
        lengths = [point.value if point and math.isfinite(point.value) else 0 for point in points]
        color, pattern = FILLS[number % len(FILLS)]
        bars = self._axes.barh(places, lengths, color=color, hatch=pattern, edgecolor="white", height=height * 0.95)
        for row, (name, place, point) in enumerate(zip(self.names, places, points, strict=True)):
            if name in shown:
                _draw_range(self._axes, place, shown[name])
            if point is not None and not number:
                link_row(self._axes, row, point.step)
            self._note_trouble(place, point)
        return bars

    def _note_trouble(self, place: float, point: Point | None) -> None:
        """Write what has no bar: 0, NaN or Inf."""
        if point is not None and self._measure != "mean" and (not point.value or not math.isfinite(point.value)):
            text, box = format_number(point.value), {"facecolor": "white", "edgecolor": "none", "pad": 1}
            within = ("axes fraction", "data")
            self._axes.annotate(text, (0.01, place), xycoords=within, va="center", color=NONFINITE, bbox=box)


def _draw_range(axes: "Axes", place: float, series: Series) -> None:
    finite = [point.value for point in series.points if math.isfinite(point.value) and point.value]
    if len(finite) > 1:
        axes.plot([min(finite), max(finite)], [place, place], color="black", linewidth=1.2, marker="|", markersize=6)


def draw_heat_map(trace: TraceData, series: Sequence[Series], of: str, measure: Measure) -> "Figure":
    """Draw a row for each layer and a column for each pass; 0, NaN or Inf, and no value have colours of their own."""
    figure = make_figure(1.3 + ROW * len(series))
    axes = figure.subplots()
    numbers = sorted({trace.pass_number(point.pass_id) for one in series for point in one.points})
    columns = {number: column for column, number in enumerate(numbers)}
    rows: list[list[float | None]] = [[None] * len(numbers) for _ignored in series]
    for row, one in zip(rows, series, strict=True):
        for point in one.points:
            row[columns[trace.pass_number(point.pass_id)]] = point.value
    norm, palette = make_norm([value for row in rows for value in row], measure)
    cells = color_cells(rows, norm, measure)
    down = [place - 0.5 for place in range(len(series) + 1)]
    mesh = axes.pcolormesh(list_edges(numbers), down, cells, norm=norm, cmap=palette, rasterized=True)
    axes.set_yticks(range(len(series)), [write_name(one.name) for one in series])
    axes.invert_yaxis()
    axes.set_xlabel(_("pass"))
    show_passes(axes, numbers)
    link_columns(axes, _find_steps(trace, series))
    figure.colorbar(mesh, label=label_of(of, measure, series), extend="neither")
    explain_colors(figure, rows, measure)
    return figure


def _find_steps(trace: TraceData, series: Sequence[Series]) -> dict[int, int]:
    """Return the number of each pass → its first step that is shown."""
    steps: dict[int, int] = {}
    for one in series:
        for point in one.points:
            number = trace.pass_number(point.pass_id)
            steps[number] = min(point.step, steps.get(number, point.step))
    return steps


class Curves:
    """Curves over the passes on one axis; what a curve cannot show is marked at its edge."""

    def __init__(self, axes: "Axes", is_logarithmic: bool) -> None:
        self._axes, self._is_logarithmic = axes, is_logarithmic
        self._lost: set[int] = set()
        """The passes with NaN or Inf."""
        self._zeros: set[int] = set()
        """The passes with 0, which a logarithmic axis does not have."""

    def add(self, points: Mapping[int, float], **looks: Any) -> None:
        """Add a curve: number of a pass → its value."""
        self._lost |= {number for number, value in points.items() if not math.isfinite(value)}
        zeros = {number for number, value in points.items() if not value and self._is_logarithmic}
        self._zeros |= zeros
        values = [
            math.nan if number in zeros or not math.isfinite(value) else value for number, value in points.items()
        ]
        marker = "." if len(points) <= MAX_MARKERS else ""
        self._axes.plot(list(points), values, marker=marker, **looks)

    def mark(self) -> None:
        """Mark the passes whose values no curve shows."""
        within = self._axes.get_xaxis_transform()
        for numbers, height, marker, label in (
            (self._lost, 0.97, "x", _("NaN or Inf")),
            (self._zeros, 0.03, "v", "0"),
        ):
            if numbers:
                places = sorted(numbers)
                heights = [height] * len(places)
                self._axes.scatter(
                    places, heights, marker=marker, color=NONFINITE, transform=within, label=label, zorder=5
                )


def draw_curves(trace: TraceData, series: Sequence[Series], of: str, measure: Measure) -> "Figure":
    """Draw a curve for each layer over the passes: early layers are dark, late ones are light.

    With many layers, some of them are named.
    """
    figure = make_figure(max(3.2, 0.8 + 0.2 * min(len(series), MAX_NAMED)))
    axes = figure.subplots()
    is_large = sum(len(one.points) for one in series) > MAX_POINTS
    palette = importlib.import_module("matplotlib").colormaps[COLORS]
    stride = -(-len(series) // MAX_NAMED) or 1
    curves = Curves(axes, measure not in ("mean", "zeros"))
    for number, one in enumerate(series):
        curves.add(
            {trace.pass_number(point.pass_id): point.value for point in one.points},
            color=palette(0.9 * number / max(len(series) - 1, 1)),
            linestyle=DASHES[number % len(DASHES)],
            label=write_name(one.name) if number % stride == 0 else "_",
            rasterized=is_large,
        )
    scale_axis(axes, "y", [point.value for one in series for point in one.points], measure)
    curves.mark()
    axes.set_xlabel(_("pass"))
    axes.set_ylabel(label_of(of, measure, series))
    steps = _find_steps(trace, series)
    show_passes(axes, [*steps])
    link_columns(axes, steps)
    title = None if stride == 1 else _("one of {count} layers").format(count=stride)
    figure.legend(loc="outside right upper", frameon=False, title=title)
    return figure


def draw_losses(trace: TraceData, losses: Sequence[Loss], rates: Mapping[str, Mapping[int, float]]) -> "Figure":
    """Draw the loss of each pass, and the learning rates if one of them changes."""
    figure = make_figure(3.2)
    axes = figure.subplots()
    curves = Curves(axes, is_logarithmic=False)
    curves.add({trace.pass_number(loss.pass_id): loss.value for loss in losses}, color=BAR, label=_("loss"))
    curves.mark()
    axes.set_xlabel(_("pass"))
    axes.set_ylabel(_("loss"))
    steps = {trace.pass_number(loss.pass_id): loss.step for loss in losses}
    show_passes(axes, [*steps])
    link_columns(axes, steps)
    if any(len(set(each.values())) > 1 for each in rates.values()):
        other = axes.twinx()
        for number, (name, each) in enumerate(rates.items()):
            numbers = [trace.pass_number(pass_id) for pass_id in each]
            style = DASHES[1 + number % (len(DASHES) - 1)]
            other.plot(numbers, list(each.values()), color=AMBER, linestyle=style, label=write_name(name))
        other.set_ylabel(_("learning rate"))
        figure.legend(loc="outside upper center", ncols=3, frameon=False)
    return figure
