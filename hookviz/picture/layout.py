"""DOT source to a picture; where Graphviz dies of it, in a simpler way, and the picture says so."""

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import NamedTuple

from hookviz.picture import graphviz_client
from hookviz.picture.graphviz_client import Answer, Job, NoWorkerError, WorkerDiedError, current_folder
from hookviz.support.messages import say

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
    """What came of a source."""

    picture: bytes = b""
    unreadable: str = ""
    """What is wrong with the source."""
    failed: str = ""
    """Why there is no picture though nothing is wrong with the source."""
    lasting: bool = True
    """Whether the next try would come to the same: a worker that was killed from outside says nothing of the graph."""


def draw_source(source: str, format: str, engine: str = "dot") -> bytes:
    """DOT source drawn as ``format``.

    Raises:
        ValueError: there is no such format, or Graphviz cannot read the source.
        NoPictureError: Graphviz died of the source, however it was drawn, or cannot run here.
    """
    if format not in FORMATS:
        raise ValueError(say("error.render.format", format=format, formats=", ".join(FORMATS)))
    job = Job(source, format, engine, current_folder())
    drawn = _kept.get(job) or _draw(job)
    if drawn.lasting:
        _keep(job, drawn)
    if drawn.unreadable:
        raise ValueError(drawn.unreadable)
    if drawn.failed:
        raise NoPictureError(drawn.failed)
    return drawn.picture


_kept: dict[Job, _Drawn] = {}
"""What was drawn last: a picture is often shown and then saved. Failures are kept as well, since they take long."""
MOST_KEPT = 32


def _keep(job: Job, drawn: _Drawn) -> None:
    _kept[job] = drawn
    for oldest in list(_kept)[:-MOST_KEPT]:
        _kept.pop(oldest, None)


def _draw(job: Job) -> _Drawn:
    """Draw in the usual way; if the worker dies of it, in simpler ways."""
    said, slow, lasting = "", False, True
    for way in (USUAL, *SIMPLER):
        if slow and not way.quick:
            continue
        note = "\n".join(_lines(f"{said} {say(way.lost)}")) if said else ""
        simpler = replace(job, attributes=way.attributes, drop_invisible_edges=way.drop_invisible_edges, note=note)
        try:
            return _checked(job, graphviz_client.draw(simpler), lasting=lasting)
        except NoWorkerError as error:
            return _Drawn(failed=str(error), lasting=False)
        except WorkerDiedError as died:
            slow = died.cause == "time"
            lasting = lasting and died.cause != "killed"
            said = said or say("picture.slow" if slow else "picture.crashed", seconds=f"{graphviz_client.SECONDS:g}")
    return _Drawn(failed=say("error.render.died"), lasting=lasting)


def _checked(job: Job, answer: Answer, *, lasting: bool) -> _Drawn:
    said = answer.content.decode(errors="replace") if answer.error else ""
    match answer.error:
        case "":
            return _Drawn(answer.content, lasting=lasting)
        case "read":
            return _Drawn(unreadable=say("error.render.failed", why=said))
        case "engine":
            return _Drawn(unreadable=say("error.render.failed", why=say("error.render.layout", engine=job.engine)))
        case "format":
            return _Drawn(unreadable=say("error.render.format", format=job.format, formats=", ".join(FORMATS)))
        case _:
            return _Drawn(failed=say("error.graphviz.system", why=said), lasting=False)


def sentence_svg(sentence: str) -> str:
    """A picture that shows ``sentence`` where there is no other.

    >>> sentence_svg("No <picture>.")[-37:]
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
