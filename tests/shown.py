"""The content of a player as a reader sees it: unpacked, step by step."""

from collections.abc import Mapping
from typing import Any

import hookviz as hv
from hookviz.player.compression import unpack
from hookviz.player.payload import Content
from hookviz.player.trace_content import TraceContent

Shown = dict[str, Any]


def unpack_chunk(content: Content, name: str) -> Any:
    """Return a chunk of ``content``, unpacked if it is compressed."""
    part = content["chunks"][name]
    return unpack(part) if isinstance(part, str) else part


def overview(content: Content, run: int = 0) -> Any:
    """Return the overview of a run: the columns that the player gets for all steps at the start."""
    sent = content["runs"][run]["overview"]
    return unpack(sent) if isinstance(sent, str) else sent


def shown_steps(content: Content, run: int = 0) -> list[Shown]:
    """Return the steps of a run, whose chunks must all be in ``content``, with their texts and marks.

    ``on`` lists the highlighted elements, ``texts`` maps elements to new texts, and ``picture`` is the index of the
    step's picture in the content.
    """
    step_columns = overview(content, run)
    words = all_words(content)
    places = content["runs"][run]["word_indices"] or range(len(step_columns["kind"]))
    views = [unpack_chunk(content, name) for name in step_columns["views"]]
    shown = []
    for step, place in enumerate(places):
        view = views[step_columns["view"][step]]
        shown.append(
            {
                **{name: step_columns[name][step] for name in ("kind", "glyph", "norm")},
                "hook": None if step_columns["hook"][step] < 0 else step_columns["hook"][step],
                "picture": view["svg"],
                **shown_words(words[place]),
                **marks(view, step),
                **(
                    {"ask": content["questions"][step_columns["questions"][str(step)][0]]}
                    if str(step) in step_columns["questions"]
                    else {}
                ),
            }
        )
    return shown


def all_words(content: Content) -> list[Any]:
    """Return the texts of all steps."""
    names = sorted((name for name in content["chunks"] if name.startswith("steps")), key=lambda name: int(name[5:]))
    return [words for name in names for words in unpack_chunk(content, name)["steps"]]


def shown_words(words: Mapping[str, Any]) -> Shown:
    """Return the texts of a step with its lists as plain lists."""
    reasons = [[reason["text"], reason["source"], reason["note"]] for reason in words.get("reasons", ())]
    return {**words, "gradients": [[*pair] for pair in words["gradients"]], **({"reasons": reasons} if reasons else {})}


def marks(view: Mapping[str, Any], step: int) -> Shown:
    """Return the elements that a step highlights in a view, its new texts and the related elements."""
    texts = {
        spot: text for spot, written in view["texts"].items() for text_step, text, _ in written if text_step == step
    }
    on = [spot for spot, steps in view["steps"].items() if step in steps]
    return {"on": on, "texts": texts, "related": view["related"].get(str(step), [])}


def content_of(trace: hv.Trace) -> Content:
    """Return the full content of a player for ``trace``."""
    return TraceContent.of(trace._data).full_content()


def shown_steps_of(trace: hv.Trace) -> list[Shown]:
    """Return the steps of ``trace`` as a player shows them."""
    return shown_steps(content_of(trace))
