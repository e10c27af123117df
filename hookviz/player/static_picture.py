"""What stands where no script runs, and on paper: the pictures as the passes left them, and the hooks that fired."""

import base64
from collections.abc import Mapping, Sequence

from hookviz.picture.inline_svg import escape_text, prepare_for_notebook, set_size
from hookviz.player.payload import Content, Firing, Run
from hookviz.support.messages import say
from hookviz.support.messages.text import Message, translate

COLUMNS = ("step", "hook", "kind", "on", "change", "effect")


def static_picture(content: Content, hint: str, *, packed: bool) -> str:
    """The end of what ``content`` opens with, as HTML; ``hint`` says how to make it play.

    Where HTML is cleaned of what might be dangerous, as in a notebook that is not trusted, drawings do not survive.
    So there they are ``packed`` into images.
    """
    run = opened(content)
    svgs = [content["svgs"][place] for place in dict.fromkeys(run["pictures"])]
    figures = [_figure(svg, place, len(svgs), packed) for place, svg in enumerate(svgs)]
    about = say("page.about", steps=f"{run['steps']:,}")
    findings = [finding["text"] for finding in content["findings"]]
    notes = [f"<li>{_read(note, content)}</li>" for note in (*findings, *content["notes"], *run["notes"])]
    listed = f'<ul class="hv-notes">{"".join(notes)}</ul>' if notes else ""
    parts = [f"<p>{about} {hint}</p>", listed, *figures, _table(run["firings"], content)]
    # Not a section: among the slides of reveal.js each of those is a slide.
    return f'<div class="hv-still">{"".join(parts)}</div>'


def opened(content: Content) -> Run:
    """The run that a player of ``content`` shows first."""
    return content["runs"][content["opening"].get("shown", 0)]


def _read(message: Message, content: Content) -> str:
    return escape_text(translate(message, content["words"]))


def _figure(svg: str, place: int, count: int, packed: bool) -> str:
    caption = f"<figcaption>{say('page.pass', number=place + 1, count=count)}</figcaption>" if count > 1 else ""
    # An image is a page of its own, and turns its colours by itself where the page around it is dark.
    return f"<figure>{caption}{_packed(prepare_for_notebook(svg)) if packed else _named(set_size(svg))}</figure>"


def _named(svg: str) -> str:
    return svg.replace("<svg", f'<svg role="img" aria-label="{say("page.picture")}"', 1)


def _packed(svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{say("page.picture")}" src="data:image/svg+xml;base64,{data}">'


def _table(firings: Sequence[Firing], content: Content) -> str:
    if not firings:
        return ""
    head = "".join(f'<th scope="col">{say(f"player.col_{column}")}</th>' for column in COLUMNS)
    rows = "".join(f"<tr>{_cells(firing, content)}</tr>" for firing in firings)
    caption = f"<caption>{say('player.firings')}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="hv-scroll">{table}</div>'


def _cells(firing: Firing, content: Content) -> str:
    shown: Mapping[str, Message] = {**firing, "step": str(firing["step"] + 1)}  # type: ignore[dict-item]
    return "".join(f"<td>{_read(shown[column], content)}</td>" for column in COLUMNS)
