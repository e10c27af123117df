"""The static version of a player, for paper and where scripts are blocked: final pictures, and tables of hooks.

On a page, a comparison shows both of its runs, and a what-if the run with all hooks on and the runs with one of
them off.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import cast

from hookviz.picture.inline_svg import escape_text, fill_texts, prepare_for_notebook, set_size
from hookviz.player.payload import Content, FiringRow, RunContent, StepsChunk, UnfiredText, ViewChunk
from hookviz.support.messages import say
from hookviz.support.messages.text import Message, translate

MAX_SIDES = 6
"""The most runs with a picture: paper for more would be wasted."""
MAX_DIFFERENCES = 60
"""The most rows of the table of differences."""
COLUMNS = ("step", "hook", "kind", "on", "change", "effect")
UNFIRED_COLUMNS = ("step", "hook", "kind", "on", "why", "advice")


def static_picture(content: Content, hint: str, *, packed: bool) -> str:
    """Return the final state of the initial run of ``content`` as HTML; ``hint`` says how to make it play.

    Notebooks that are not trusted remove SVG from their outputs. With ``packed``, each picture is an image instead.
    """
    run = initial_run(content)
    svgs = [content["svgs"][index] for index in dict.fromkeys(run["pictures"])]
    # The output of a notebook stays small: it has the initial run alone.
    sides = [] if packed else list_sides(content)
    titles = _pass_titles(run, len(svgs))
    figures = [_figure_html(svg, title, packed) for svg, title in zip(svgs, titles, strict=True)]
    if sides:
        figures = [figure for number in sides for figure in _side_figures(content, number)]
    summary = say("page.about", steps=f"{run['steps']:,}")
    unfired = _unfired_table(run, content)
    # The table says the same of hooks that did not fire.
    findings = [finding["text"] for finding in content["findings"] if not (unfired and finding.get("unfired"))]
    notes = [f"<li>{_message_html(note, content)}</li>" for note in (*findings, *content["notes"], *run["notes"])]
    note_list = f'<ul class="hv-notes">{"".join(notes)}</ul>' if notes else ""
    table = _firings_table(run["firings"], content)
    parts = [f"<p>{summary} {hint}</p>", note_list, *figures, _omitted_note(content, sides), table, unfired]
    parts += [_differences_table(content)] if sides else []
    # No <section>: reveal.js turns each section into a slide.
    return f'<div class="hv-still">{"".join(parts)}</div>'


def initial_run(content: Content) -> RunContent:
    """Return the run that a player of ``content`` shows first."""
    return content["runs"][content["initial_state"].get("shown", 0)]


def list_sides(content: Content) -> list[int]:
    """Return the indices of the runs that are shown as pictures; empty if there is only one run.

    They are the initial run and its baseline, and of a what-if also the runs with one hook off, ``MAX_SIDES`` at most.
    """
    if len(content["runs"]) < 2:
        return []
    initial = content["initial_state"].get("shown", 0)
    baseline = content["runs"][initial]["baseline"]
    alone = [run for off, run in content["combinations"].items() if "," not in off]
    chosen = [*([0] if content["combinations"] else []), *([] if baseline is None else [baseline]), initial, *alone]
    return list(dict.fromkeys(chosen))[:MAX_SIDES]


def _side_figures(content: Content, number: int) -> list[str]:
    """Return a figure for each pass of a run, with the texts of that run and its name."""
    views = list_views(content, number)
    run = content["runs"][number]
    label = _message_html(run["label"], content)
    figures = []
    for index, view in enumerate(views):
        if not isinstance(view["svg"], int) or view["svg"] < 0:
            continue
        name = say("page.pass", number=index + 1, count=len(views)) if len(views) > 1 else ""
        caption = " · ".join(filter(None, (label, name)))
        svg = fill_texts(content["svgs"][view["svg"]], _side_texts(content, view))
        picture = _add_label(set_size(svg))
        figures.append(f'<figure data-run="{number}"><figcaption>{caption}</figcaption>{picture}</figure>')
    return figures


def list_views(content: Content, number: int) -> list[ViewChunk]:
    """Return the views of a run, one for each pass."""
    views = [chunk for name, chunk in content["chunks"].items() if name.startswith(f"run{number}/")]
    return [cast(ViewChunk, view) for view in views if isinstance(view, dict)]


def _side_texts(content: Content, view: ViewChunk) -> dict[str, str]:
    """Return the final texts of a view; texts that only other runs have are empty."""
    drawn = (other for number in range(len(content["runs"])) for other in list_views(content, number))
    names = {name for other in drawn if other["svg"] == view["svg"] for name in other["texts"]}
    own = {name: translate(steps[-1][1], content["words"]) for name, steps in view["texts"].items() if steps}
    return dict.fromkeys(names, "") | own


def _omitted_note(content: Content, sides: Sequence[int]) -> str:
    count = len(content["runs"])
    return f"<p>{say('page.omitted', count=count)}</p>" if 0 < len(sides) < count else ""


def _differences_table(content: Content) -> str:
    """Return the steps in which the initial run differs from its baseline, with the sentences of both."""
    initial = content["initial_state"].get("shown", 0)
    run = content["runs"][initial]
    if run["baseline"] is None:
        return ""
    baseline = content["runs"][run["baseline"]]
    pairs = enumerate(zip(baseline["word_indices"] or (), run["word_indices"] or (), strict=False), 1)
    different = [(step, pair) for step, pair in pairs if pair[0] != pair[1]]
    rows = "".join(
        f"<tr><td>{step}</td>{''.join(f'<td>{_sentence_html(content, index)}</td>' for index in pair)}</tr>"
        for step, pair in different[:MAX_DIFFERENCES]
    )
    labels = "".join(f'<th scope="col">{_message_html(side["label"], content)}</th>' for side in (baseline, run))
    head = f'<th scope="col">{say("player.col_step")}</th>{labels}'
    caption = say("page.differences", count=f"{len(different):,}", shown=min(len(different), MAX_DIFFERENCES))
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    return f'<div class="hv-scroll">{table}</div>' if different else f"<p>{say('page.no_difference')}</p>"


def _sentence_html(content: Content, index: int) -> str:
    """Return the sentence of a step, by the index of its words among the words of all runs."""
    number, place = divmod(index, content["chunk_size"])
    chunk = cast(StepsChunk, content["chunks"][f"steps{number}"])
    return _message_html(chunk["steps"][place]["sentence"], content)


def _message_html(message: Message, content: Content) -> str:
    return escape_text(translate(message, content["words"]))


def _pass_titles(run: RunContent, count: int) -> list[str]:
    """Return the titles of the pictures of ``count`` passes; empty ones if there is only one."""
    numbers = run.get("pass_numbers", [])
    if len(numbers) == count:
        return [say("fold.pass", number=f"{number:,}") for number in numbers]
    return [say("page.pass", number=index + 1, count=count) if count > 1 else "" for index in range(count)]


def _figure_html(svg: str, title: str, packed: bool) -> str:
    caption = f"<figcaption>{title}</figcaption>" if title else ""
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
    rows = [_firing_cells(firing, content) for firing in firings]
    return _table_html(COLUMNS, rows, say("player.firings")) if firings else ""


def _unfired_table(run: RunContent, content: Content) -> str:
    """Return the table of the hooks that did not fire, which the player hides with the other answers."""
    if not run.get("unfired"):
        return ""
    rows = [_unfired_cells(hook, content) for hook in run["unfired"]]
    more = f"<p>{_message_html(run['unfired_more'], content)}</p>" if "unfired_more" in run else ""
    return _table_html(UNFIRED_COLUMNS, rows, say("player.unfired"), more)


def _table_html(columns: Sequence[str], rows: Sequence[str], caption: str, below: str = "") -> str:
    """Return a table that scrolls on a narrow screen, with what stands below it."""
    head = "".join(f'<th scope="col">{say(f"player.col_{column}")}</th>' for column in columns)
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="hv-scroll">{table}{below}</div>'


def _firing_cells(firing: FiringRow, content: Content) -> str:
    cells: Mapping[str, Message] = {**firing, "step": str(firing["step"] + 1)}  # type: ignore[dict-item]
    return "".join(f"<td>{_message_html(cells[column], content)}</td>" for column in COLUMNS)


def _unfired_cells(hook: UnfiredText, content: Content) -> str:
    step = "" if hook["step"] < 0 else str(hook["step"] + 1)
    cells: Mapping[str, Message] = {**hook, "step": step}  # type: ignore[dict-item]
    return "".join(f"<td>{_message_html(cells[column], content)}</td>" for column in UNFIRED_COLUMNS)
