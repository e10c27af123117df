"""What all charts share: an empty Matplotlib figure, colours and line styles, the names of measures, and links."""

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hookviz.picture.plots.series import Measure
from hookviz.support.messages import N_, _
from hookviz.support.optional_modules import load_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 7.2
"""The width of a chart in inches: that of a cell's output."""
ROW = 0.26
"""The height of a layer in inches."""
MAX_LINKS = 100
"""More passes than this share links to their steps."""
COLORS = "cividis"
"""A scale that people with any kind of colour blindness read, and that is monotonous in grey."""
BOTH_WAYS = "PuOr"
"""A scale for numbers below and above 0, which they read, too."""
BAR, TROUBLE = "#7c3aed", "#b45309"
FILLS: tuple[tuple[str, str], ...] = ((BAR, ""), ("#0f766e", "////"), ("#b45309", "...."), ("#475569", "xxxx"))
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


def write_name(name: str) -> str:
    """Write a name for Matplotlib: ``$`` begins mathematics there, and a legend leaves out what begins with ``_``."""
    escaped = name.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def label_of(of: str, measure: Measure) -> str:
    """Return the label of an axis."""
    return _(LABELS[of][measure])


def make_norm(values: Sequence[float], measure: Measure) -> tuple[Any, Any]:
    """Return how Matplotlib maps numbers to colours, and the colours; what is 0, NaN or Inf has some of its own."""
    colors = importlib.import_module("matplotlib.colors")
    maps = importlib.import_module("matplotlib").colormaps
    finite = [value for value in values if math.isfinite(value)]
    if measure == "zeros":
        norm, name = colors.Normalize(0, 1), COLORS
    elif measure == "mean":
        norm, name = colors.CenteredNorm(halfrange=max(map(abs, finite), default=1) or 1), BOTH_WAYS
    else:
        norm, name = colors.LogNorm(*_find_limits([value for value in finite if value > 0])), COLORS
    return norm, maps[name].with_extremes(bad=TROUBLE, under="white")


def _find_limits(values: Sequence[float]) -> tuple[float, float]:
    low, high = (min(values), max(values)) if values else (1.0, 1.0)
    return (low, high) if low < high else (low / 2, high * 2)


def scale_axis(axes: "Axes", which: str, values: Sequence[float], measure: Measure) -> None:
    """A share has a scale from 0 to 1, and what may be negative a linear one; all others have a logarithmic one."""
    positive = [value for value in values if value > 0 and math.isfinite(value)]
    set_limits = getattr(axes, f"set_{which}lim")
    if measure == "zeros":
        set_limits(0, 1)
    elif measure != "mean" and positive:
        getattr(axes, f"set_{which}scale")("log")
        set_limits(min(positive) / 3, max(positive) * 2)


def link_panel(axes: "Axes", step: int) -> None:
    """Let a click anywhere in a chart lead to a step."""
    _link_area(axes, (0, 0, 1, 1), axes.transAxes, step)


def link_row(axes: "Axes", row: int, step: int) -> None:
    """Let a click anywhere in a row of bars lead to a step: some bars are too short for it."""
    _link_area(axes, (0, row - 0.5, 1, 1), axes.get_yaxis_transform(), step)


def link_columns(axes: "Axes", steps: Mapping[int, int], most: int = MAX_LINKS) -> None:
    """Let a click on a column lead to its step (number of a pass → step); beyond ``most`` links, passes share one."""
    numbers = sorted(steps)
    stride = -(-len(numbers) // most) or 1
    for start in range(0, len(numbers), stride):
        first, last = numbers[start], numbers[min(start + stride, len(numbers)) - 1]
        _link_area(axes, (first - 0.5, 0, last - first + 1, 1), axes.get_xaxis_transform(), steps[first])


def _link_area(axes: "Axes", box: tuple[float, float, float, float], transform: Any, step: int) -> None:
    """Lay an area that nobody sees over a chart, (left, bottom, width, height) as a transform reads them."""
    left, bottom, width, height = box
    rectangle = importlib.import_module("matplotlib.patches").Rectangle
    area = rectangle((left, bottom), width, height, transform=transform, alpha=0, zorder=10)
    area.set_url(f"#step-{step + 1}")
    axes.add_patch(area)
