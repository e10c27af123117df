"""DOT source to a picture; where Graphviz dies of it, in a simpler way, and the picture says so."""

import textwrap
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import NamedTuple

from hookviz.picture import graphviz_client
from hookviz.picture.graphviz_client import Answer, Job, NoWorkerError, WorkerDiedError
from hookviz.words import say

FORMATS = ("svg", "png", "dot", "gif", "jpg", "json", "plain", "xdot")
"""What the carried library can write."""

LINE = 44
"""A sentence in a picture has lines of at most so many characters: they are read on a phone, too."""


class NoPictureError(RuntimeError):
    """Graphviz could draw this graph in no way, or cannot run here at all; the text says why."""


class Way(NamedTuple):
    """How a graph is drawn."""

    lost: str = ""
    """The key of the text that says what the picture lacks."""
    attributes: Mapping[str, str] = {}
    drop_invisible_edges: bool = False
    quick: bool = False
    """Whether it is worth trying after another way took too long."""


USUAL = Way()
_STRAIGHT = {"splines": "line", "nslimit": "1", "mclimit": "0.1"}
SIMPLER = (
    Way("picture.lost.nothing", {"newrank": "true"}),
    Way("picture.lost.order", drop_invisible_edges=True),
    Way("picture.lost.bends", _STRAIGHT, drop_invisible_edges=True, quick=True),
    Way("picture.lost.frames", {**_STRAIGHT, "clusterrank": "none"}, drop_invisible_edges=True, quick=True),
)
"""From what loses least to what loses most; each cures graphs on which those before it die."""


class _Drawn(NamedTuple):
    """What came of a source; kept also where it is no picture, since the next try would take as long."""

    picture: bytes = b""
    unreadable: str = ""
    """What is wrong with the source."""
    failed: str = ""
    """Why there is no picture though nothing is wrong with the source."""


def draw_source(source: str, format: str, engine: str = "dot") -> bytes:
    """DOT source drawn as ``format``.

    Raises:
        ValueError: there is no such format, or Graphviz cannot read the source.
        NoPictureError: Graphviz died of the source, however it was drawn, or cannot run here.
    """
    if format not in FORMATS:
        raise ValueError(say("error.render.format", format=format, formats=", ".join(FORMATS)))
    try:
        drawn = _draw(source, format, engine)
    except NoWorkerError as error:
        raise NoPictureError(str(error)) from None
    if drawn.unreadable:
        raise ValueError(drawn.unreadable)
    if drawn.failed:
        raise NoPictureError(drawn.failed)
    return drawn.picture


@lru_cache(maxsize=32)
def _draw(source: str, format: str, engine: str) -> _Drawn:
    """The drawing itself, kept a while: a picture is often shown and then saved.

    Raises:
        NoWorkerError: no process can be started for Graphviz; the next time, one perhaps can.
    """
    said = ""
    in_time = True
    for way in (USUAL, *SIMPLER):
        if not in_time and not way.quick:
            continue
        note = "\\n".join(_lines(f"{said} {say(way.lost)}")) if said else ""
        job = Job(source, format, engine, way.attributes, way.drop_invisible_edges, note)
        try:
            return _checked(graphviz_client.draw(job), format, engine)
        except WorkerDiedError as died:
            in_time = died.in_time
            said = said or say("picture.crashed" if in_time else "picture.slow", seconds=graphviz_client.SECONDS)
    return _Drawn(failed=say("error.render.died"))


def _checked(answer: Answer, format: str, engine: str) -> _Drawn:
    if answer.error == "read":
        return _Drawn(unreadable=say("error.render.failed", why=answer.content.decode(errors="replace")))
    if answer.error == "engine":
        return _Drawn(unreadable=say("error.render.failed", why=say("error.render.layout", engine=engine)))
    if answer.error == "format":
        return _Drawn(unreadable=say("error.render.format", format=format, formats=", ".join(FORMATS)))
    return _Drawn(answer.content)


def sentence_svg(sentence: str) -> str:
    """A picture that shows ``sentence`` where there is no other.

    >>> sentence_svg("No <picture>.")[-38:]
    '>No &lt;picture&gt;.</text></g></svg>'
    """
    texts = "".join(_text_lines(sentence))
    height = 20 * len(_lines(sentence)) + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 {height}" class="hv-svg"'
    style = 'fill="currentColor" font-family="Helvetica, Arial, sans-serif" font-size="14"'
    return f"{head}><g {style}>{texts}</g></svg>"


def _text_lines(sentence: str) -> Iterator[str]:
    for number, line in enumerate(_lines(sentence)):
        yield f'<text x="12" y="{24 + 20 * number}">{escape(line, quote=False)}</text>'


def _lines(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, LINE)
