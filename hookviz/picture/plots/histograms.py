"""The charts of distributions: a histogram for each layer in one pass, or a heat map of them over all passes."""

import importlib
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hookviz.picture.plots.figures import (
    BAR,
    COLORS,
    MAX_LINKS,
    link_columns,
    link_panel,
    list_edges,
    make_figure,
    show_passes,
    write_name,
)
from hookviz.picture.plots.series import Distributions
from hookviz.picture.styles import NONFINITE
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.histogram_rows import HistogramRow
from hookviz.trace.values import format_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = 40
BEYOND = 0.0025
"""No more of all numbers than this lie beyond each limit of an axis; they are counted in the outermost columns."""
SHARES = (0.001, 0.5)
"""The shares of the numbers that have the first and the last colour of a heat map."""
MAX_PANELS = 30
"""More layers than this do not fit on a page: the first ones are shown."""
PANEL_NAME = 24
_ACROSS = 3
_PANEL = 1.7


class Limits(NamedTuple):
    """What an axis shows."""

    low: float
    high: float

    def list_edges(self) -> list[float]:
        """Return where the columns begin, and where the last one ends."""
        return [self.low + (self.high - self.low) * number / COLUMNS for number in range(COLUMNS + 1)]

    def find_column(self, number: float) -> float:
        """Return the place of a number, counted in columns."""
        return (number - self.low) / (self.high - self.low) * COLUMNS


def draw_histograms(shown: Sequence[Distributions], pass_id: int) -> "Figure":
    """Draw the histogram of each layer in one pass; a click leads to its step."""
    figure, panels = _make_panels(len(shown))
    for axes, (name, rows) in zip(panels, shown, strict=True):
        row = rows[pass_id]
        limits = find_limits([row])
        axes.stairs(count_in_columns(row, limits), limits.list_edges(), fill=True, color=BAR)
        link_panel(axes, row.step)
        lost = _(", {count} NaN or Inf").format(count=row.nonfinite) if row.nonfinite else ""
        deviation = format_number(row.std if row.read else math.nan, 2)
        axes.set_title(f"{write_name(name, PANEL_NAME)}\nstd {deviation}{lost}", fontsize=9)
        axes.set_yticks([])
        axes.set_xlim(*limits)
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter(_format_tick)
    return figure


def draw_histograms_of_training(trace: TraceData, shown: Sequence[Distributions]) -> "Figure":
    """Draw a heat map for each layer: a column for each pass, in which the histogram of that pass stands upright."""
    figure, panels = _make_panels(len(shown))
    norm = importlib.import_module("matplotlib.colors").LogNorm(*SHARES)
    palette = importlib.import_module("matplotlib").colormaps[COLORS]
    palette = palette.with_extremes(bad=NONFINITE)  # a pass without a finite number
    mesh = None
    for axes, (name, rows) in zip(panels, shown, strict=True):
        limits = find_limits(list(rows.values()))
        numbers = [trace.pass_number(pass_id) for pass_id in rows]
        shares = [count_in_columns(row, limits) if row.read else [math.nan] * COLUMNS for row in rows.values()]
        cells = [[max(share, SHARES[0]) for share in column] for column in zip(*shares, strict=True)]
        mesh = axes.pcolormesh(
            list_edges(numbers), limits.list_edges(), cells, norm=norm, cmap=palette, rasterized=True
        )
        if limits.low < 0 < limits.high:
            axes.axhline(0, color="white", linewidth=0.6)
        show_passes(axes, numbers, most=3)
        axes.set_title(write_name(name, PANEL_NAME), fontsize=9)
        axes.locator_params(axis="y", nbins=3)
        axes.yaxis.set_major_formatter(_format_tick)
        steps = dict(zip(numbers, (row.step for row in rows.values()), strict=True))
        link_columns(axes, steps, MAX_LINKS // len(shown))
    if mesh is not None:
        figure.supxlabel(_("pass"), fontsize=10)
        figure.colorbar(mesh, ax=panels, label=_("share of the numbers"), extend="both", aspect=40)
    return figure


def _format_tick(number: float, _place: float) -> str:
    """Write a number at an axis in full: a common power of ten would stand in the title."""
    return f"{number:.2g}"


def _make_panels(count: int) -> "tuple[Figure, list[Axes]]":
    across = min(count, _ACROSS)
    down = -(-count // across)
    figure = make_figure(0.4 + _PANEL * down)
    grid = figure.subplots(down, across, squeeze=False)
    panels = list(grid.flat)
    for empty in panels[count:]:
        empty.set_axis_off()
    return figure, panels[:count]


def find_limits(rows: Sequence[HistogramRow]) -> Limits:
    """Return limits with 0 and nearly all numbers between them."""
    counts: dict[tuple[float, float], int] = {}
    for row in rows:
        for low, high, count in row.ranges():
            counts[low, high] = counts.get((low, high), 0) + count
    ordered = sorted(counts)
    left_out = BEYOND * sum(counts.values())
    lowest = _skip(((low, counts[low, high]) for low, high in ordered), left_out)
    highest = _skip(((high, counts[low, high]) for low, high in reversed(ordered)), left_out)
    limits = Limits(min(lowest, 0.0), max(highest, 0.0))
    return limits if limits.low < limits.high else Limits(-1.0, 1.0)


def _skip(counted: Iterable[tuple[float, int]], count: float) -> float:
    """Return the first limit up to which there are more numbers than ``count``."""
    seen = 0
    for limit, number in counted:
        seen += number
        if seen > count:
            return limit
    return 0.0


def count_in_columns(row: HistogramRow, limits: Limits) -> list[float]:
    """Return the share of the numbers in each of ``COLUMNS`` columns of equal width between the limits.

    The numbers of a bin are taken to be spread evenly over it.
    """
    shares = [0.0] * COLUMNS
    for low, high, count in row.ranges():
        for column, part in _spread(limits.find_column(low), limits.find_column(high)):
            shares[column] += count / row.read * part
    return shares


def _spread(start: float, end: float) -> Iterator[tuple[int, float]]:
    """Yield (column, part of it) of what lies evenly between two places; what is beyond belongs to the outermost."""
    first, last = (min(max(math.floor(place), 0), COLUMNS - 1) for place in (start, end))
    if first == last:
        yield first, 1.0
        return
    for column in range(first, last + 1):
        left = start if column == first else column
        right = end if column == last else column + 1
        yield column, (right - left) / (end - start)
