"""The content of a player as a reader sees it: unpacked, step by step, in English."""

from collections.abc import Mapping
from typing import Any

import hookviz as hv
from hookviz.player.compression import unpack
from hookviz.player.payload import Content, Message
from hookviz.player.trace_content import TraceContent
from hookviz.support.messages import load_texts
from hookviz.support.messages.text import translate

Shown = dict[str, Any]


def in_english(message: Message) -> str:
    """Translate a message to English."""
    return translate(message, load_texts())


def unpack_chunk(content: Content, name: str) -> Any:
    """Return a chunk of ``content``, unpacked if it is compressed."""
    part = content["chunks"][name]
    return unpack(part) if isinstance(part, str) else part


def outline(content: Content, run: int = 0) -> Any:
    """Return the outline of a run: the columns that the player gets for all steps at the start."""
    sent = content["runs"][run]["outline"]
    return unpack(sent) if isinstance(sent, str) else sent


def shown_steps(content: Content, run: int = 0) -> list[Shown]:
    """Return the steps of a run, whose chunks must all be in ``content``, with their texts and marks.

    ``on`` lists the highlighted elements, ``texts`` maps elements to new texts, and ``picture`` is the index of the
    step's picture in the content.
    """
    step_columns = outline(content, run)
    words = all_words(content)
    places = content["runs"][run]["word_indices"] or range(len(step_columns["kind"]))
    views = [unpack_chunk(content, name) for name in step_columns["views"]]
    shown = []
    for step, place in enumerate(places):
        view = views[step_columns["picture"][step]]
        shown.append(
            {
                **{name: step_columns[name][step] for name in ("kind", "glyph", "norm")},
                "hook": None if step_columns["hook"][step] < 0 else step_columns["hook"][step],
                "picture": view["svg"],
                **words_in_english(words[place]),
                **marks(view, step),
                **(
                    {"ask": question_in_english(content["questions"][step_columns["questions"][str(step)][0]])}
                    if str(step) in step_columns["questions"]
                    else {}
                ),
            }
        )
    return shown


def question_in_english(question: Mapping[str, Any]) -> Shown:
    """Translate a question to English."""
    shown_question: Shown = {**question, "text": in_english(question["text"])}
    if "mistakes" in shown_question:
        shown_question["mistakes"] = [(wrong, in_english(why)) for wrong, why in question["mistakes"]]
    for name in ("choices", "reasons"):
        if name in shown_question:
            shown_question[name] = [in_english(message) for message in question[name]]
    return shown_question


def all_words(content: Content) -> list[Any]:
    """Return the untranslated texts of all steps."""
    names = sorted((name for name in content["chunks"] if name.startswith("steps")), key=lambda name: int(name[5:]))
    return [words for name in names for words in unpack_chunk(content, name)["steps"]]


def words_in_english(words: Mapping[str, Any]) -> Shown:
    """Translate the texts of a step to English."""
    shown_words: Shown = dict(words)
    for name in ("title", "sentence", "before_label", "after_label", "registration", "next_hook"):
        shown_words[name] = in_english(words[name])
    for name in ("before", "after"):
        shown_words[name] = None if words[name] is None else in_english(words[name])
    shown_words["gradients"] = [[in_english(where), in_english(value)] for where, value in words["gradients"]]
    if "reasons" in words:
        shown_words["reasons"] = [
            [in_english(reason["text"]), reason["source"], in_english(reason["note"])] for reason in words["reasons"]
        ]
    return shown_words


def marks(view: Mapping[str, Any], step: int) -> Shown:
    """Return the elements that a step highlights in a view, its new texts and the related elements."""
    texts = {
        spot: in_english(text)
        for spot, steps_and_texts in view["texts"].items()
        for text_step, text in steps_and_texts
        if text_step == step
    }
    on = [spot for spot, steps in view["steps"].items() if step in steps]
    return {"on": on, "texts": texts, "related": view["related"].get(str(step), [])}


def shown_notes(content: Content) -> list[str]:
    """Return the notes in English."""
    return [in_english(note) for note in content["notes"]]


def shown_findings(content: Content) -> list[tuple[str, int]]:
    """Return each finding in English with its step."""
    return [(in_english(finding["text"]), finding["step"]) for finding in content["findings"]]


def shown_firings(content: Content, run: int = 0) -> list[Shown]:
    """Return the rows of the table of hooks in English."""
    rows = content["runs"][run]["firings"]
    return [{name: in_english(x) if name not in ("step", "hook") else x for name, x in row.items()} for row in rows]


def content_of(trace: hv.Trace) -> Content:
    """Return the full content of a player for ``trace``."""
    return TraceContent(trace._data).full_content()


def shown_steps_of(trace: hv.Trace) -> list[Shown]:
    """Return the steps of ``trace`` as a player shows them."""
    return shown_steps(content_of(trace))
