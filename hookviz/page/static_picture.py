"""What stands where no script runs, and on paper: the pictures as the passes left them, and the hooks that fired."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from hookviz.picture.inline_svg import finished, shown, sized, text
from hookviz.player.assets import length
from hookviz.support.messages import say

State = Mapping[str, Any]
"""What a player shows, as ``hookviz.player.frames.state`` makes it."""

COLUMNS = ("step", "hook", "kind", "on", "change", "effect")


def static_picture(state: State, hint: str, *, packed: bool) -> str:
    """The end of what ``state`` shows, as HTML; ``hint`` says how to make it play.

    Where HTML is cleaned of what might be dangerous, as in a notebook that is not trusted, drawings do not survive.
    So there they are ``packed`` into images.
    """
    state = plain(state)
    used = [k for k, svg in enumerate(state["svgs"]) if svg]
    pictures = [_figure(state, used, place, packed) for place in range(len(used))]
    about = say("page.about", steps=f"{length(state):,}")
    told = (note.partition("\n#step-")[0] for note in state["notes"])  # without a player no link leads anywhere
    notes = [f"<li>{text(note)}</li>" for note in told]
    listed = f'<ul class="hv-notes">{"".join(notes)}</ul>' if notes else ""
    parts = [f"<p>{about} {hint}</p>", listed, *pictures, _table(state["firings"])]
    # Not a section: among the slides of reveal.js each of those is a slide.
    return f'<div class="hv-still">{"".join(parts)}</div>'


def plain(state: State) -> State:
    """Of several variants the one that is shown first, with the pictures that it is shown in."""
    variants = state.get("variants")
    if not variants:
        return state
    shown = variants[state.get("shown", 0)]
    frames = [state["frames"][number] for number in shown["frames"]]
    used = {frame["picture"] for frame in frames}
    svgs = [svg if k in used else "" for k, svg in enumerate(state["svgs"])]
    notes = [*state["notes"], *shown["notes"]]
    return {**state, "frames": frames, "firings": shown["firings"], "svgs": svgs, "notes": notes}


def _figure(state: State, used: Sequence[int], place: int, packed: bool) -> str:
    caption, k = "", used[place]
    if len(used) > 1:
        caption = f"<figcaption>{say('page.pass', number=place + 1, count=len(used))}</figcaption>"
    texts = [frame["texts"] for frame in state["frames"] if frame["picture"] == k]
    svg = finished(state["svgs"][k], {spot: shown for there in texts for spot, shown in there.items()})
    # An image is a page of its own, and turns its colours by itself where the page around it is dark.
    return f"<figure>{caption}{_packed(shown(svg)) if packed else _named(sized(svg))}</figure>"


def _named(svg: str) -> str:
    return svg.replace("<svg", f'<svg role="img" aria-label="{say("page.picture")}"', 1)


def _packed(svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{say("page.picture")}" src="data:image/svg+xml;base64,{data}">'


def _table(firings: Sequence[Mapping[str, Any]]) -> str:
    if not firings:
        return ""
    head = "".join(f'<th scope="col">{say(f"player.col_{column}")}</th>' for column in COLUMNS)
    rows = "".join(f"<tr>{''.join(_cell(firing, column) for column in COLUMNS)}</tr>" for firing in firings)
    caption = f"<caption>{say('player.firings')}</caption>"
    table = f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="hv-scroll">{table}</div>'


def _cell(firing: Mapping[str, Any], column: str) -> str:
    shown = firing["step"] + 1 if column == "step" else firing[column]
    return f"<td>{text(shown)}</td>"
