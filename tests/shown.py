"""What a player shows, read from what it is sent: step by step, in English."""

from collections.abc import Mapping
from typing import Any

from hookviz.player.compression import unpack
from hookviz.player.payload import Content, Message
from hookviz.player.trace_content import TraceContent
from hookviz.support.messages import load_texts
from hookviz.support.messages.text import translate
from hookviz.trace import TraceData

Shown = dict[str, Any]


def said(message: Message) -> str:
    """A message in English."""
    return translate(message, load_texts())


def opened(content: Content, name: str) -> Any:
    """A part of ``content``, unpacked."""
    part = content["chunks"][name]
    return unpack(part) if isinstance(part, str) else part


def outline(content: Content, run: int = 0) -> Any:
    """What is known of all steps of a run from the start."""
    sent = content["runs"][run]["outline"]
    return unpack(sent) if isinstance(sent, str) else sent


def shown_steps(content: Content, run: int = 0) -> list[Shown]:
    """The steps of a run, of which all parts must be there, each with its words, and with what it marks and writes.

    ``on``: the elements that it is about, ``texts``: what it writes, ``picture``: the place of its picture among those
    of the content.
    """
    known = outline(content, run)
    words = all_words(content)
    places = content["runs"][run]["word_indices"] or range(len(known["kind"]))
    views = [opened(content, name) for name in known["views"]]
    shown = []
    for step, place in enumerate(places):
        view = views[known["picture"][step]]
        shown.append(
            {
                **{name: known[name][step] for name in ("kind", "glyph", "norm")},
                "hook": None if known["hook"][step] < 0 else known["hook"][step],
                "picture": view["svg"],
                **plain(words[place]),
                **marks(view, step),
                **({"ask": asked(known["questions"][str(step)])} if str(step) in known["questions"] else {}),
            }
        )
    return shown


def asked(question: Mapping[str, Any]) -> Shown:
    """A question in English."""
    told: Shown = {**question, "text": said(question["text"])}
    if "mistakes" in told:
        told["mistakes"] = [(wrong, said(why)) for wrong, why in question["mistakes"]]
    for name in ("choices", "reasons"):
        if name in told:
            told[name] = [said(message) for message in question[name]]
    return told


def all_words(content: Content) -> list[Any]:
    """The words of all steps."""
    names = sorted((name for name in content["chunks"] if name.startswith("steps")), key=lambda name: int(name[5:]))
    return [words for name in names for words in opened(content, name)["steps"]]


def plain(words: Mapping[str, Any]) -> Shown:
    """The words of a step in English."""
    told: Shown = dict(words)
    for name in ("title", "sentence", "before_label", "after_label", "registration", "next_hook"):
        told[name] = said(words[name])
    for name in ("before", "after"):
        told[name] = None if words[name] is None else said(words[name])
    told["gradients"] = [[said(where), said(value)] for where, value in words["gradients"]]
    if "reasons" in words:
        told["reasons"] = [
            [said(reason["text"]), reason["source"], said(reason["note"])] for reason in words["reasons"]
        ]
    return told


def marks(view: Mapping[str, Any], step: int) -> Shown:
    """What a step marks and writes in a view."""
    texts = {spot: said(text) for spot, there in view["texts"].items() for at, text in there if at == step}
    on = [spot for spot, there in view["steps"].items() if step in there]
    return {"on": on, "texts": texts, "related": view["related"].get(str(step), [])}


def shown_notes(content: Content) -> list[str]:
    """The notes, in English."""
    return [said(note) for note in content["notes"]]


def shown_findings(content: Content) -> list[tuple[str, int]]:
    """The findings, in English, each with its step."""
    return [(said(finding["text"]), finding["step"]) for finding in content["findings"]]


def shown_firings(content: Content, run: int = 0) -> list[Shown]:
    """The table of hooks, in English."""
    rows = content["runs"][run]["firings"]
    return [{name: said(x) if name not in ("step", "hook") else x for name, x in row.items()} for row in rows]


def content_of(trace: TraceData) -> Content:
    """All that a player shows of ``trace``."""
    return TraceContent(trace).full_content()


def shown_steps_of(trace: TraceData) -> list[Shown]:
    """The steps of ``trace`` as a player shows them."""
    return shown_steps(content_of(trace))
