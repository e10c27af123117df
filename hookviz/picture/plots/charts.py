"""The charts of a trace, which Matplotlib draws: bars of layers, a heat map of layers and passes, a curve of losses."""

import importlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hookviz.picture.plots.series import Loss, Measure, Series
from hookviz.support.messages import N_, _
from hookviz.support.optional_modules import load_optional
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number
from hookviz.trace.values import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2
"""The width of a chart in inches: that of a cell's output."""
ROW = 0.26
"""The height of a layer in inches."""
MAX_LINKS = 200
"""More passes than this share links to their steps."""
COLORS = "cividis"
"""A scale that people with any kind of colour blindness read, and that is monotonous in grey."""
BAR, TROUBLE = "#7c3aed", "#b45309"

_LABELS: dict[Measure, str] = {
    "norm": N_("norm of the gradient"),
    "rms": N_("root mean square of the gradient"),
    "zeros": N_("share of the gradient that is 0"),
}


def make_figure(rows: int) -> "Figure":
    """Make an empty figure with room for so many rows.

    Raises:
        ImportError: Matplotlib is not installed; the message says how to install it.
    """
    missing = _('Plots need Matplotlib, which is not installed: install it with: pip install "hookviz[plots]"')
    figure: Figure = load_optional("matplotlib.figure", missing).Figure(
        figsize=(WIDTH, max(1.1 + ROW * rows, 2.4)), layout="constrained"
    )
    return figure


def draw_bars(trace: TraceData, series: Sequence[Series], measure: Measure, pass_id: int) -> "Figure":
    """Draw a bar for each layer in one pass, and a line from its smallest to its largest number in all passes."""
    figure = make_figure(len(series))
    axes = figure.subplots()
    names = [one.name for one in series]
    points = [next((point for point in one.points if point.pass_id == pass_id), None) for one in series]
    finite = [point.value if point and math.isfinite(point.value) else 0 for point in points]
    _choose_scale(axes, [value for one in series for _pass, _step, value in one.points], measure)
    bars = axes.barh(names, finite, color=BAR, height=0.7)
    for bar, point in zip(bars, points, strict=True):
        if point is not None:
            bar.set_url(f"#step-{point.step + 1}")
    for place, (one, point) in enumerate(zip(series, points, strict=True)):
        _draw_range(axes, place, one)
        if point is not None and (not point.value or not math.isfinite(point.value)):
            axes.annotate(
                format_number(point.value),
                (0.01, place),
                xycoords=("axes fraction", "data"),
                va="center",
                color=TROUBLE,
            )
    axes.invert_yaxis()
    axes.set_xlabel(_(_LABELS[measure]))
    if len(trace.lookup.passes) > 1:
        axes.set_title(_("Pass {number}").format(number=format_pass_number(trace, pass_id)))
    return figure


def _draw_range(axes: "Axes", place: int, series: Series) -> None:
    finite = [value for _pass, _step, value in series.points if math.isfinite(value) and value > 0]
    if len(finite) > 1:
        axes.plot([min(finite), max(finite)], [place, place], color="black", linewidth=1.2, marker="|", markersize=6)


def _choose_scale(axes: "Axes", values: Sequence[float], measure: Measure) -> None:
    """A share has a scale from 0 to 1; what spans several orders of magnitude, a logarithmic one."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    if measure == "zeros":
        axes.set_xlim(0, 1)
    elif positive:
        axes.set_xscale("log")
        axes.set_xlim(min(positive) / 3, max(positive) * 2)


def draw_heat_map(trace: TraceData, series: Sequence[Series], measure: Measure) -> "Figure":
    """Draw a row for each layer and a column for each pass; what is 0, NaN or Inf has colours of its own."""
    colors = importlib.import_module("matplotlib.colors")
    figure = make_figure(len(series))
    axes = figure.subplots()
    passes = sorted({point.pass_id for one in series for point in one.points})
    columns = {pass_id: column for column, pass_id in enumerate(passes)}
    first = trace.pass_number(passes[0]) if passes else 1
    cells = [[math.nan] * len(passes) for _ignored in series]
    for row, one in zip(cells, series, strict=True):
        for point in one.points:
            row[columns[point.pass_id]] = point.value
    finite = [value for row in cells for value in row if math.isfinite(value) and (value > 0 or measure == "zeros")]
    norm: Any = colors.Normalize(0, 1) if measure == "zeros" else colors.LogNorm(*_find_limits(finite))
    palette = importlib.import_module("matplotlib").colormaps[COLORS].with_extremes(bad=TROUBLE, under="white")
    across, down = (
        [start - 0.5 + n for n in range(count + 1)] for start, count in ((first, len(passes)), (0, len(series)))
    )
    mesh = axes.pcolormesh(across, down, cells, norm=norm, cmap=palette, rasterized=True)
    axes.set_yticks(range(len(series)), [one.name for one in series])
    axes.invert_yaxis()
    axes.set_xlabel(_("pass"))
    _link_columns(axes, {first + columns[point.pass_id]: point.step for point in reversed(series[-1].points)})
    figure.colorbar(mesh, label=_(_LABELS[measure]))
    return figure


def _link_columns(axes: "Axes", steps: dict[int, int]) -> None:
    """Let a click on a column lead to its step; of many passes, some share a link."""
    rectangle = importlib.import_module("matplotlib.patches").Rectangle
    numbers = sorted(steps)
    stride = -(-len(numbers) // MAX_LINKS) or 1
    for number in numbers[::stride]:
        area = rectangle((number - 0.5, 0), stride, 1, transform=axes.get_xaxis_transform(), alpha=0)
        area.set_url(f"#step-{steps[number] + 1}")
        axes.add_patch(area)


def _find_limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    return (low, high) if low < high else (low / 2, high * 2)


def draw_losses(losses: Sequence[Loss]) -> "Figure":
    """Draw the loss of each pass, and the learning rate if it changes."""
    figure = make_figure(8)
    axes = figure.subplots()
    numbers = [number for number, _loss in enumerate(losses, 1)]
    axes.plot(numbers, [loss.value for loss in losses], color=BAR)
    axes.set_xlabel(_("pass"))
    axes.set_ylabel(_("loss"))
    rates = [loss.rate for loss in losses]
    if len({rate for rate in rates if rate is not None}) > 1:
        other = axes.twinx()
        other.plot(numbers, [math.nan if rate is None else rate for rate in rates], color=TROUBLE, linestyle="--")
        other.set_ylabel(_("learning rate"))
    return figure
