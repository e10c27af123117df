"""The static version of a player, for paper and where scripts are blocked: the end of the pass, and tables of hooks."""

import base64
from collections.abc import Mapping, Sequence

from hookviz.picture.inline_svg import escape_text, prepare_for_notebook, set_size
from hookviz.player.payload import Content, FiringRow, RunContent
from hookviz.support.messages import N_, _, join_sentences

_PICTURE_LABEL = N_("The autograd graph at the end of the pass")
COLUMNS = ("step", "hook", "kind", "on", "change", "effect")


def static_picture(content: Content, hint: str, *, packed: bool) -> str:
    """Return the end of the initial run of ``content`` as HTML; ``hint`` says how to make it play.

    Notebooks that are not trusted remove SVG from their outputs. With ``packed``, the picture is an image instead.
    """
    run = initial_run(content)
    summary = _("The end of the recording: {steps} steps.").format(steps=f"{run['steps']:,}")
    findings = [join_sentences([finding["text"], finding["more"]]) for finding in content["findings"]]
    notes = [f"<li>{escape_text(note)}</li>" for note in (*findings, *content["notes"], *run["notes"])]
    note_list = f'<ul class="hv-notes">{"".join(notes)}</ul>' if notes else ""
    parts = [f"<p>{summary} {hint}</p>", note_list, _figure_html(content, packed), _firings_table(content)]
    # No <section>: reveal.js turns each section into a slide.
    return f'<div class="hv-still">{"".join(parts)}</div>'


def initial_run(content: Content) -> RunContent:
    """Return the run that a player of ``content`` shows first."""
    return content["runs"][content["initial_state"].get("shown", 0)]


def _figure_html(content: Content, packed: bool) -> str:
    """Return the end of the last pass of the initial run, with the names of the run and the pass if there are any."""
    run = initial_run(content)
    svg = content["svgs"][run["picture"]]
    titles = [escape_text(title) for title in (run["label"], run.get("last_pass", "")) if title]
    caption = f"<figcaption>{' · '.join(titles)}</figcaption>" if titles else ""
    # An image is a document of its own: its style sheet follows the dark mode of the system.
    picture = _image_html(prepare_for_notebook(svg)) if packed else _add_label(set_size(svg))
    return f"<figure>{caption}{picture}</figure>"


def _add_label(svg: str) -> str:
    return svg.replace("<svg", f'<svg role="img" aria-label="{_(_PICTURE_LABEL)}"', 1)


def _image_html(svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{_(_PICTURE_LABEL)}" src="data:image/svg+xml;base64,{data}">'


def _firings_table(content: Content) -> str:
    run = initial_run(content)
    rows = [_firing_cells(firing) for firing in run["firings"]]
    labels = content["labels"]
    caption = " · ".join(filter(None, (labels["firings"], escape_text(run["label"]))))
    return _table_html(COLUMNS, rows, labels, caption) if rows else ""


def _table_html(columns: Sequence[str], rows: Sequence[str], labels: Mapping[str, str], caption: str) -> str:
    """Return a table that scrolls on a narrow screen."""
    head = "".join(f'<th scope="col">{labels[f"col_{column}"]}</th>' for column in columns)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="hv-scroll">{table}</div>'


def _firing_cells(firing: FiringRow) -> str:
    cells: Mapping[str, str] = {**firing, "step": str(firing["step"] + 1)}  # type: ignore[dict-item]
    return "".join(f"<td>{escape_text(cells[column])}</td>" for column in COLUMNS)
