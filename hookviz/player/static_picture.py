"""The static version of a player, for paper and where scripts are blocked: final pictures and the table of firings."""

import base64
from collections.abc import Mapping, Sequence

from hookviz.picture.inline_svg import escape_text, prepare_for_notebook, set_size
from hookviz.player.payload import Content, FiringRow, RunContent
from hookviz.support.messages import say
from hookviz.support.messages.text import Message, translate

COLUMNS = ("step", "hook", "kind", "on", "change", "effect")


def static_picture(content: Content, hint: str, *, packed: bool) -> str:
    """Return the final state of the initial run of ``content`` as HTML; ``hint`` says how to make it play.

    Notebooks that are not trusted remove SVG from their outputs. With ``packed``, each picture is an image instead.
    """
    run = initial_run(content)
    svgs = [content["svgs"][index] for index in dict.fromkeys(run["pictures"])]
    figures = [_figure_html(svg, index, len(svgs), packed) for index, svg in enumerate(svgs)]
    summary = say("page.about", steps=f"{run['steps']:,}")
    findings = [finding["text"] for finding in content["findings"]]
    notes = [f"<li>{_message_html(note, content)}</li>" for note in (*findings, *content["notes"], *run["notes"])]
    note_list = f'<ul class="hv-notes">{"".join(notes)}</ul>' if notes else ""
    parts = [f"<p>{summary} {hint}</p>", note_list, *figures, _firings_table(run["firings"], content)]
    # No <section>: reveal.js turns each section into a slide.
    return f'<div class="hv-still">{"".join(parts)}</div>'


def initial_run(content: Content) -> RunContent:
    """Return the run that a player of ``content`` shows first."""
    return content["runs"][content["initial_state"].get("shown", 0)]


def _message_html(message: Message, content: Content) -> str:
    return escape_text(translate(message, content["words"]))


def _figure_html(svg: str, index: int, count: int, packed: bool) -> str:
    caption = f"<figcaption>{say('page.pass', number=index + 1, count=count)}</figcaption>" if count > 1 else ""
    # An image is a document of its own: its style sheet follows the dark mode of the system.
    return (
        f"<figure>{caption}{_image_html(prepare_for_notebook(svg)) if packed else _add_label(set_size(svg))}</figure>"
    )


def _add_label(svg: str) -> str:
    return svg.replace("<svg", f'<svg role="img" aria-label="{say("page.picture")}"', 1)


def _image_html(svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{say("page.picture")}" src="data:image/svg+xml;base64,{data}">'


def _firings_table(firings: Sequence[FiringRow], content: Content) -> str:
    if not firings:
        return ""
    head = "".join(f'<th scope="col">{say(f"player.col_{column}")}</th>' for column in COLUMNS)
    rows = "".join(f"<tr>{_firing_cells(firing, content)}</tr>" for firing in firings)
    caption = f"<caption>{say('player.firings')}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="hv-scroll">{table}</div>'


def _firing_cells(firing: FiringRow, content: Content) -> str:
    cells: Mapping[str, Message] = {**firing, "step": str(firing["step"] + 1)}  # type: ignore[dict-item]
    return "".join(f"<td>{_message_html(cells[column], content)}</td>" for column in COLUMNS)
