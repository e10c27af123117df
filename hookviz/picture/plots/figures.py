"""What all charts share: an empty Matplotlib figure, colours and line styles, the names of measures, and links."""

import importlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hookviz.picture.plots.series import Measure, Series
from hookviz.picture.styles import AMBER, NONFINITE
from hookviz.support.messages import N_, _
from hookviz.support.optional_modules import load_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2
"""The width of a chart in inches: that of a cell's output."""
ROW = 0.26
"""The height of a layer in inches."""
ROW_OF_OTHERS = 0.1
"""How much higher, in rows, each further trace makes a layer: a higher chart has small letters on a slide."""
FEW_DECADES = 300
"""An axis whose ends are closer than this factor has numbers in full."""
LONGEST_NAME = 34
MAX_LINKS = 100
"""More passes than this share links to their steps."""
COLORS = "cividis"
"""A scale that people with any kind of colour blindness read, and that is monotonous in grey."""
BOTH_WAYS = "PuOr"
"""A scale for numbers below and above 0, which they read, too."""
BAR, MISSING = "#7c3aed", "#cbd5e1"
FILLS: tuple[tuple[str, str], ...] = ((BAR, ""), ("#0f766e", "////"), (AMBER, "...."), ("#475569", "xxxx"))
"""Colour and pattern of the bars of each trace, since colour is never the only sign."""
DASHES = ("solid", "dashed", "dotted", "dashdot")

LABELS: dict[str, dict[Measure, str]] = {
    "gradients": {
        "norm": N_("norm of the gradient"),
        "rms": N_("root mean square of the gradient"),
        "mean_abs": N_("mean absolute value of the gradient"),
        "mean": N_("mean of the gradient"),
        "std": N_("standard deviation of the gradient"),
        "zeros": N_("share of the gradient that is 0"),
    },
    "outputs": {
        "norm": N_("norm of the output"),
        "rms": N_("root mean square of the output"),
        "mean_abs": N_("mean absolute value of the output"),
        "mean": N_("mean of the output"),
        "std": N_("standard deviation of the output"),
        "zeros": N_("share of the output that is 0"),
    },
    "weights": {
        "norm": N_("norm of the weights"),
        "rms": N_("root mean square of the weights"),
        "mean_abs": N_("mean absolute value of the weights"),
        "mean": N_("mean of the weights"),
        "std": N_("standard deviation of the weights"),
        "zeros": N_("share of the weights that are 0"),
        "update": N_("update ÷ weight (root mean squares)"),
    },
}


def make_figure(height: float, *, width: float = WIDTH) -> "Figure":
    """Make an empty figure, of so many inches.

    Raises:
        ImportError: Matplotlib is not installed; the message says how to install it.
    """
    missing = _('Plots need Matplotlib, which is not installed: install it with: pip install "hookviz[plots]"')
    figure: Figure = load_optional("matplotlib.figure", missing).Figure(
        figsize=(width, max(height, 2.4)), layout="constrained"
    )
    return figure


def write_name(name: str, room: int = LONGEST_NAME) -> str:
    """Write a name for Matplotlib: ``$`` begins mathematics there, and a legend leaves out what begins with ``_``.

    Of a long name, the end tells more.
    """
    short = name if len(name) <= room else "…" + name[1 - room :]
    escaped = short.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def label_of(of: str, measure: Measure, series: Sequence[Series]) -> str:
    """Return the label of an axis; it begins with ≈ if some numbers are known from samples only."""
    is_sampled = any(point.is_sampled for one in series for point in one.points)
    return ("≈ " if is_sampled else "") + _(LABELS[of][measure])


def make_norm(values: Sequence[float | None], measure: Measure) -> tuple[Any, Any]:
    """Return how Matplotlib maps numbers to colours, and the colours; ``color_cells`` says which others there are."""
    colors = importlib.import_module("matplotlib.colors")
    maps = importlib.import_module("matplotlib").colormaps
    finite = [value for value in values if value is not None and math.isfinite(value)]
    if measure == "zeros":
        norm, name = colors.Normalize(0, 1), COLORS
    elif measure == "mean":
        norm, name = colors.CenteredNorm(halfrange=max(map(abs, finite), default=1) or 1), BOTH_WAYS
    else:
        norm, name = colors.LogNorm(*_find_limits([value for value in finite if value > 0])), COLORS
    return norm, maps[name].with_extremes(bad=MISSING, under="white", over=NONFINITE)


def color_cells(rows: Sequence[Sequence[float | None]], norm: Any, measure: Measure) -> list[list[float]]:
    """Return the cells of a heat map: NaN and Inf lie above its colours, 0 below logarithmic ones, None is missing."""

    def place(value: float | None) -> float:
        if value is None:
            return math.nan
        if not math.isfinite(value):
            return float(norm.vmax) * 1e6 if measure != "mean" else math.inf
        return float(norm.vmin) / 1e6 if not value and measure not in ("zeros", "mean") else value

    return [[place(value) for value in row] for row in rows]


def explain_colors(figure: "Figure", rows: Sequence[Sequence[float | None]], measure: Measure) -> None:
    """Name the colours that the scale beside a heat map does not show, as far as they occur."""
    values = [value for row in rows for value in row]
    has_zeros = measure not in ("zeros", "mean") and 0 in values
    has_trouble = any(value is not None and not math.isfinite(value) for value in values)
    named = [
        ("0", "white", has_zeros),
        (_("NaN or Inf"), NONFINITE, has_trouble),
        (_("no value"), MISSING, None in values),
    ]
    patch = importlib.import_module("matplotlib.patches").Patch
    handles = [patch(facecolor=color, edgecolor="black", label=label) for label, color, occurs in named if occurs]
    if handles:
        figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)


def _find_limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    return (low, high) if low < high else (low / 2, high * 2)


def scale_axis(axes: "Axes", which: str, values: Sequence[float], measure: Measure) -> None:
    """A share has a scale from 0 to 1, and what may be negative a linear one; all others have a logarithmic one."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    set_limits = getattr(axes, f"set_{which}lim")
    if measure == "zeros":
        set_limits(-0.02, 1.02)
    elif measure != "mean" and positive:
        getattr(axes, f"set_{which}scale")("log")
        low, high = min(positive) / 3, max(positive) * 2
        set_limits(low, high)
        if high < FEW_DECADES * low:
            _write_short_ticks(getattr(axes, f"{which}axis"))


def _write_short_ticks(axis: Any) -> None:
    """Write numbers in full at 1, 2 and 5 of each decade: powers of ten would leave few, or overlap."""
    ticker = importlib.import_module("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(lambda number, _place: f"{number:g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def show_passes(axes: "Axes", numbers: Sequence[int], most: int = 10) -> None:
    """Let the axis below a chart reach from the first pass to the last one, with whole numbers only."""
    edges = list_edges(sorted(numbers))
    axes.set_xlim(edges[0], edges[-1])
    axes.xaxis.set_major_locator(importlib.import_module("matplotlib.ticker").MaxNLocator(most, integer=True))


def link_panel(axes: "Axes", step: int) -> None:
    """Let a click anywhere in a chart lead to a step."""
    _link_area(axes, (0, 0, 1, 1), axes.transAxes, step)


def link_row(axes: "Axes", row: int, step: int) -> None:
    """Let a click anywhere in a row of bars lead to a step: some bars are too short for it."""
    _link_area(axes, (0, row - 0.5, 1, 1), axes.get_yaxis_transform(), step)


def list_edges(numbers: Sequence[int]) -> list[float]:
    """Return where the columns of passes with these numbers begin, and where the last one ends: halfway between."""
    middles = [(one + other) / 2 for one, other in itertools.pairwise(numbers)]
    if not middles:
        return [numbers[0] - 0.5, numbers[0] + 0.5]
    return [2 * numbers[0] - middles[0], *middles, 2 * numbers[-1] - middles[-1]]


def link_columns(axes: "Axes", steps: Mapping[int, int], most: int = MAX_LINKS) -> None:
    """Let a click on a column lead to its step (number of a pass → step); beyond ``most`` links, passes share one."""
    numbers = sorted(steps)
    edges = list_edges(numbers)
    stride = -(-len(numbers) // most) or 1
    for start in range(0, len(numbers), stride):
        left, right = edges[start], edges[min(start + stride, len(numbers))]
        _link_area(axes, (left, 0, right - left, 1), axes.get_xaxis_transform(), steps[numbers[start]])


def _link_area(axes: "Axes", box: tuple[float, float, float, float], transform: Any, step: int) -> None:
    """Lay an area that nobody sees over a chart, (left, bottom, width, height) as a transform reads them."""
    left, bottom, width, height = box
    rectangle = importlib.import_module("matplotlib.patches").Rectangle
    area = rectangle((left, bottom), width, height, transform=transform, alpha=0, zorder=10)
    area.set_url(f"#step-{step + 1}")
    axes.add_patch(area)
