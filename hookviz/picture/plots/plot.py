"""A plot of a trace, as it is shown and saved: an SVG whose marks lead to steps, and a table of what it shows."""

import importlib
import io
import re
from collections.abc import Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from hookviz.picture.plots.charts import draw_bars, draw_heat_map, draw_losses
from hookviz.picture.plots.series import MEASURES, Measure, Series, list_losses, list_series
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import _
from hookviz.support.table import Table
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number
from hookviz.trace.values import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["layers", "training", "loss"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_MAX_ROWS = 2_000
"""A longer table is cut: a page holds it whether somebody opens it or not."""
_DARK = "<style>@media (prefers-color-scheme: dark) { svg { color: #e5e7eb; } }</style>"
"""Text and axes of a file follow the reader's theme; in a page they have the colour of its text."""


class Plot:
    """A plot of a trace. Jupyter shows it; a click on a bar or a column leads the player above to the step.

    ``figure`` is the Matplotlib figure, to go on from; ``table`` is what it shows, as text.
    """

    def __init__(self, title: str, figure: "Figure", table: Table[tuple[str, ...]]) -> None:
        self.title, self.figure, self.table = title, figure, table

    @cached_property
    def _svg(self) -> str:
        drawn = io.StringIO()
        with importlib.import_module("matplotlib").rc_context({"svg.fonttype": "none", "svg.hashsalt": "hookviz"}):
            self.figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
        svg = drawn.getvalue()
        svg = svg[svg.index("<svg") :].replace("#000000", "currentColor").replace('xlink:href="#step', 'href="#step')
        svg = re.sub(r' id="[A-Za-z0-9]+_\d+"', "", svg)  # a page may have several plots
        looks = 'fill="currentColor" style="max-width: 100%; height: auto"'
        return svg.replace("<svg ", f'<svg role="group" aria-label="{escape(self.title)}" {looks} ', 1)

    def svg(self) -> str:
        """Return the plot as SVG; its text has the colour of the text around it."""
        return self._svg

    def save(self, path: str | Path) -> None:
        """Write the plot to a file: ``.svg``, or another format that Matplotlib writes, such as ``.png`` or ``.pdf``.

        An existing file stays unchanged if writing fails.

        Raises:
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is not a path.
            ValueError: Matplotlib does not write this format.
        """
        suffix = to_path(path).suffix[1:].lower() or "svg"
        if suffix == "svg":
            write_atomically(self._svg.replace(">", f">{_DARK}", 1), path)
            return
        drawn = io.BytesIO()
        self.figure.savefig(drawn, format=suffix, dpi=200)
        write_atomically(drawn.getvalue(), path)

    def to_html(self) -> str:
        """Return the plot as a part of a page, with its table folded below it."""
        summary = _("The numbers")
        return (
            f'<figure class="hv-plot"><figcaption>{escape(self.title)}</figcaption>{self._svg}'
            f"<details><summary>{summary}</summary>{self.table._repr_html_()}</details></figure>"
        )

    def _repr_mimebundle_(self, **_ignored: Any) -> dict[str, str]:
        return {"text/html": self.to_html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{self.title}\n{self.table}"


def make_plot(trace: TraceData, kind: str, measure: str, step: int | None) -> Plot:
    """Make the plot of a ``kind``; ``step`` is in the pass whose layers are shown.

    Raises:
        ImportError: Matplotlib is not installed.
        ValueError: there is no such kind or measure, or the trace has nothing to plot.
    """
    _check("kind", kind, KINDS)
    _check("measure", measure, MEASURES)
    if kind == "loss":
        return _plot_losses(trace)
    chosen = cast("Measure", measure)
    series = list_series(trace, chosen)
    if not series:
        raise ValueError(_("There is nothing to plot: no gradient of a leaf was recorded."))
    if kind == "training":
        return _plot_training(trace, series, chosen)
    pass_id = trace.rows[step].pass_id if step is not None else series[-1].points[-1].pass_id
    return _plot_layers(trace, series, chosen, pass_id)


def _plot_layers(trace: TraceData, series: Sequence[Series], measure: Measure, pass_id: int) -> Plot:
    values = [(one.name, next((x.value for x in one.points if x.pass_id == pass_id), None)) for one in series]
    rows = [(name, "" if value is None else format_number(value, 4)) for name, value in values]
    figure = draw_bars(trace, series, measure, pass_id)
    return Plot(_("Gradients of the layers"), figure, _make_table([_("layer"), measure], rows))


def _plot_training(trace: TraceData, series: Sequence[Series], measure: Measure) -> Plot:
    rows = [
        (one.name, format_pass_number(trace, point.pass_id), format_number(point.value, 4))
        for one in series
        for point in one.points
    ]
    table = _make_table([_("layer"), _("pass"), measure], rows)
    return Plot(_("Gradients of the layers in each pass"), draw_heat_map(trace, series, measure), table)


def _plot_losses(trace: TraceData) -> Plot:
    losses = list_losses(trace)
    if not losses:
        raise ValueError(_("There is nothing to plot: no pass started at a single number."))
    rows = [
        (format_pass_number(trace, one.pass_id), *(("" if x is None else format_number(x, 4)) for x in one[2:]))
        for one in losses
    ]
    table = _make_table([_("pass"), _("loss"), _("learning rate")], rows)
    return Plot(_("The loss of each pass"), draw_losses(losses), table)


def _make_table(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table[tuple[str, ...]]:
    return Table(rows[:_MAX_ROWS], head, lambda row: row)


def _check(name: str, value: object, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(
            _("There is no {name} {value!r} of a plot: choose one of {allowed}.").format(
                name=name, value=value, allowed=", ".join(allowed)
            )
        )
