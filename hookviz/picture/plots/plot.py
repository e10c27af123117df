"""A plot of a trace, as it is shown and saved: an SVG whose marks lead to steps, and a table of what it shows."""

import importlib
import io
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hookviz.picture.plots.charts import Bars, draw_curves, draw_heat_map, draw_losses
from hookviz.picture.plots.figures import label_of, write_name
from hookviz.picture.plots.histograms import MAX_PANELS, draw_histograms, draw_histograms_of_training
from hookviz.picture.plots.series import (
    MEASURES,
    Distributions,
    Measure,
    Series,
    list_distributions,
    list_losses,
    list_rates,
    list_series,
)
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import N_, _, join_list
from hookviz.support.table import Table
from hookviz.trace import TraceData
from hookviz.trace.histogram_rows import SUBJECTS, HistogramRow
from hookviz.trace.sentences import format_pass_number
from hookviz.trace.values import format_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_RASTER = 144
"""Dots per inch of what is a picture inside the SVG: the colours of a heat map, and very many curves."""
_LOOKS = (
    ".hv-plot { overflow-x: auto; } .hv-plot > svg { width: 100%; min-width: 560px; max-width: 720px; height: auto; } "
    ".hv-plot th, .hv-plot td { text-align: left; }"
)
"""On a phone, a plot is scrolled sideways: its text would be too small."""
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
        options = {"svg.fonttype": "none", "svg.hashsalt": "hookviz"}
        with importlib.import_module("matplotlib").rc_context(options), warnings.catch_warnings():
            # The reader's fonts draw the text, and have more letters than the one that measures it.
            warnings.filterwarnings("ignore", "Glyph", UserWarning)
            self.figure.savefig(drawn, format="svg", transparent=True, dpi=_RASTER, metadata={"Date": None})
        looks = f'role="group" aria-label="{escape(self.title)}" fill="currentColor" stroke-linejoin="round"'
        return _clean_svg(drawn.getvalue()).replace("<svg ", f"<svg {looks} ", 1)

    def svg(self) -> str:
        """Return the plot as SVG; its text has the colour of the text around it."""
        return self._svg

    def save(self, path: str | Path) -> None:
        """Write the plot with its title to a file: ``.svg``, or another format of Matplotlib, as ``.png`` or ``.pdf``.

        An existing file stays unchanged if writing fails.

        Raises:
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is not a path.
            ValueError: Matplotlib does not write this format.
        """
        suffix = to_path(path).suffix[1:].lower() or "svg"
        title = self.figure.suptitle(write_name(self.title, room=len(self.title)), fontsize=11)
        _reveal(title, True)
        try:
            if suffix == "svg":
                titled = Plot(self.title, self.figure, self.table)
                write_atomically(titled.svg().replace(">", f">{_DARK}", 1), path)
                return
            drawn = io.BytesIO()
            self.figure.savefig(drawn, format=suffix, dpi=200)
            write_atomically(drawn.getvalue(), path)
        finally:
            _reveal(title, False)

    def to_html(self) -> str:
        """Return the plot as a part of a page, with its table folded below it; it needs no script."""
        return f"<style>{_LOOKS}</style>{write_markup(self)}"

    def _repr_mimebundle_(self, **_ignored: Any) -> dict[str, str]:
        return {"text/html": self.to_html(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{self.title}\n{self.table}"


def _reveal(title: "Text", is_shown: bool) -> None:
    """Show a title of a figure, or hide it and leave no room for it."""
    title.set_visible(is_shown)
    title.set_in_layout(is_shown)


def _clean_svg(svg: str) -> str:
    """Return an SVG of Matplotlib as a part of a page: nothing in it holds for the page, and its links have names."""
    svg = svg[svg.index("<svg") :].replace("#000000", "currentColor")
    label = _("Step {step}").format(step=r"\1")
    # JupyterLab writes to each href, and fails at those of an SVG; it leaves this older kind alone.
    link = rf'<a role="link" xlink:href="#step-\1" aria-label="{label}" pointer-events="all">'
    svg = re.sub(r'<a xlink:href="#step-(\d+)"[^>]*>', link, svg)
    svg = re.sub(r' id="[A-Za-z0-9]+_\d+"', "", svg)  # a page may have several plots
    svg = re.sub(r"\s*<style.*?</style>", "", svg, flags=re.DOTALL)
    return re.sub(r' style="([^"]*)"', lambda found: _write_attributes(found[1]), svg)


def write_markup(plot: Plot) -> str:
    """Write a plot as a part of a page, without a style, which the policy of a page may forbid."""
    summary = _("The numbers")
    table = re.sub(r' style="[^"]*"', "", plot.table._repr_html_())
    return (
        f'<figure class="hv-plot"><figcaption>{escape(plot.title)}</figcaption>{plot.svg()}'
        f"<details><summary>{summary}</summary>{table}</details></figure>"
    )


def _write_attributes(style: str) -> str:
    """Write a style as attributes of SVG: the security policy of a page allows these, and no styles of elements."""
    pairs = [pair.partition(":") for pair in style.split(";") if pair.strip()]
    attributes = []
    for name, _colon, value in pairs:
        if name.strip() == "font":
            attributes.append(f'font-size="{value.split()[0]}" font-family="sans-serif"')
        else:
            attributes.append(f'{name.strip()}="{value.strip()}"')
    return " " + " ".join(attributes) if attributes else ""


@dataclass(frozen=True)
class PlotOptions:
    """What the user asks of a plot; ``hookviz.Trace.plot`` describes each option."""

    kind: str = "layers"
    of: str = "gradients"
    measure: str = "norm"
    layers: tuple[str, ...] = ("*",)
    step: int | None = None
    others: Mapping[str, TraceData] = field(default_factory=dict)

    def check(self) -> None:
        """Check the options.

        Raises:
            ValueError: there is no such kind, subject or measure.
        """
        for name, value, allowed in (
            ("kind", self.kind, KINDS),
            ("of", self.of, SUBJECTS),
            ("measure", self.measure, MEASURES),
        ):
            if value not in allowed:
                raise ValueError(
                    _("There is no {name} {value!r} of a plot: choose one of {allowed}.").format(
                        name=name, value=value, allowed=", ".join(allowed)
                    )
                )
        if self.others and self.kind != "layers":
            raise ValueError(_('Other traces stand beside this one in the kind "layers" only.'))

    @property
    def checked_measure(self) -> Measure:
        """The measure, which is one of those that there are."""
        return cast("Measure", self.measure)

    def find_series(self, trace: TraceData) -> list[Series]:
        """Return the series that the plot shows.

        Raises:
            ValueError: nothing was recorded that it could show.
        """
        found = list_series(trace, self.of, self.checked_measure, self.layers)
        if not found:
            raise ValueError(self._explain_nothing(trace))
        return found

    def find_distributions(self, trace: TraceData) -> list[Distributions]:
        """Return the distributions that the plot shows, no more than fit.

        Raises:
            ValueError: nothing was recorded that it could show.
        """
        found = list_distributions(trace, self.of, self.layers)
        if not found:
            raise ValueError(self._explain_nothing(trace))
        return found

    def _explain_nothing(self, trace: TraceData) -> str:
        if self.layers != ("*",):
            names = list(dict.fromkeys([*trace.lookup.leaf_names.values(), *(row.name for row in trace.modules)]))
            return _("There is nothing to plot: no layer is named like {layers}. The names are {names}.").format(
                layers=_(" or ").join(map(repr, self.layers)), names=join_list(names[:8] + ["…"] * (len(names) > 8))
            )
        return _("There is nothing to plot: nothing was recorded that has this measure.")


def make_plot(trace: TraceData, options: PlotOptions) -> Plot:
    """Make a plot of a trace.

    Raises:
        ImportError: Matplotlib is not installed.
        ValueError: there is no such plot, or the trace has nothing to plot.
    """
    options.check()
    return _MAKERS[options.kind](trace, options)


def list_plots(trace: TraceData) -> list[tuple[str, PlotOptions]]:
    """List the plots that show something of a trace, each with its name, without drawing them."""
    several = len(trace.lookup.passes) > 1
    listed = [(_("Gradients"), PlotOptions("layers"))] if trace.lookup.leaf_names else []
    if listed and several:
        listed.append((_("Passes"), PlotOptions("training")))
    if several and trace.losses:
        listed.append((_("Loss"), PlotOptions("loss")))
    known = {row.of for row in trace.histograms}
    return listed + [(_(_NAMES[of]), PlotOptions("histograms", of=of)) for of in SUBJECTS if of in known]


def _plot_layers(trace: TraceData, options: PlotOptions) -> Plot:
    own = options.find_series(trace)
    shown = {_("this trace"): own, **{name: options.find_series(other) for name, other in options.others.items()}}
    last = own[-1].points[-1].pass_id if options.step is None else trace.rows[options.step].pass_id
    pass_ids = [last, *(max(one.points[-1].pass_id for one in shown[name]) for name in options.others)]
    bars = Bars(shown, pass_ids, options.of, options.checked_measure)
    values = [
        [_find_value(series, name, at) for series, at in zip(shown.values(), pass_ids, strict=True)]
        for name in bars.names
    ]
    rows = [(name, *each) for name, each in zip(bars.names, values, strict=True)]
    head = [_("layer"), *([options.measure] if len(shown) == 1 else shown)]
    in_pass = (
        _(", pass {number}").format(number=format_pass_number(trace, last)) if len(trace.lookup.passes) > 1 else ""
    )
    return Plot(_title(options.of) + in_pass, bars.figure, Table(rows, head, _as_cells))


def _find_value(series: Sequence[Series], name: str, pass_id: int) -> str:
    point = next((one.at(pass_id) for one in series if one.name == name), None)
    return "" if point is None else format_number(point.value, 4)


def _plot_training(trace: TraceData, options: PlotOptions) -> Plot:
    series = options.find_series(trace)
    draw = draw_curves if options.kind == "curves" else draw_heat_map
    figure = draw(trace, series, options.of, options.checked_measure)
    rows = [(one.name, *_sum_up([point.value for point in one.points])) for one in series]
    title = f"{_title(options.of)}: {label_of(options.of, options.checked_measure, series)}"
    return Plot(title, figure, Table(rows, _list_heads(), _as_cells))


def _list_heads() -> list[str]:
    """Return the heads of a table with a line for each curve."""
    return [_("layer"), _("passes"), _("first"), _("smallest"), _("largest"), _("last")]


def _sum_up(values: Sequence[float]) -> tuple[str, ...]:
    """Describe a curve in numbers: a table of each of its points would be a long one."""
    described = (values[0], min(values), max(values), values[-1])
    return (str(len(values)), *(format_number(value, 4) for value in described))


def _plot_histograms(trace: TraceData, options: PlotOptions) -> Plot:
    found = options.find_distributions(trace)
    passes = sorted({pass_id for one in found for pass_id in one.rows})
    title = _title(options.of)
    if len(found) > MAX_PANELS:
        title += _(" – the first {shown} of {count}: choose others with layers=").format(
            shown=MAX_PANELS, count=len(found)
        )
    shown = found[:MAX_PANELS]
    if len(passes) > 1 and options.step is None:
        figure = draw_histograms_of_training(trace, shown)
    else:
        wanted = passes[-1] if options.step is None else trace.rows[options.step].pass_id
        shown = [one for one in shown if wanted in one.rows]
        if not shown:
            raise ValueError(_("There is nothing to plot: this pass has no histograms."))
        figure = draw_histograms(shown, wanted)
        passes = [wanted]
    rows = [
        (one.name, *_sum_up_histograms([row for pass_id, row in one.rows.items() if pass_id in passes]))
        for one in shown
    ]
    head = [_("layer"), _("passes"), _("mean"), "std", _("share of zeros"), _("read"), _("of")]
    return Plot(title, figure, Table(rows, head, _as_cells))


def _sum_up_histograms(rows: Sequence[HistogramRow]) -> tuple[str, ...]:
    """Describe the last of several distributions, after their number."""
    last = rows[-1]
    known = (last.mean, last.std, last.zeros) if last.read else (math.nan,) * 3
    numbers = (format_number(number, 3) for number in known)
    return (str(len(rows)), *numbers, f"{last.read + last.nonfinite:,}", f"{last.total:,}")


def _plot_losses(trace: TraceData, options: PlotOptions) -> Plot:
    losses = list_losses(trace)
    if not losses:
        raise ValueError(_("There is nothing to plot: no pass started at a single number."))
    rates = list_rates(trace)
    rows = [(_("loss"), *_sum_up([one.value for one in losses]))]
    for name, each in rates.items():
        rows.append((_("learning rate of {name}").format(name=name), *_sum_up(list(each.values()))))
    return Plot(_("The loss of each pass"), draw_losses(trace, losses, rates), Table(rows, _list_heads(), _as_cells))


_MAKERS: dict[str, Callable[[TraceData, PlotOptions], Plot]] = {
    "layers": _plot_layers,
    "curves": _plot_training,
    "training": _plot_training,
    "histograms": _plot_histograms,
    "loss": _plot_losses,
}
KINDS = tuple(_MAKERS)
_NAMES = {
    "gradients": N_("Histograms: gradients"),
    "outputs": N_("Histograms: outputs"),
    "weights": N_("Histograms: weights"),
}
_TITLES = {
    "gradients": N_("Gradients of the layers"),
    "outputs": N_("Outputs of the layers"),
    "weights": N_("Weights of the layers"),
}


def _title(of: str) -> str:
    return _(_TITLES[of])


def _as_cells(row: tuple[str, ...]) -> tuple[str, ...]:
    return row
