"""Drawing DOT source that a user gives, such as torchviz's; if Graphviz dies of its curves, with straight arrows."""

from collections.abc import Iterator
from dataclasses import replace
from html import escape

from hookviz.picture.graphviz_client import Answer, Job, NoWorkerError, WorkerDiedError, draw_in_worker
from hookviz.support.columns import wrap
from hookviz.support.messages import N_, _

_UNKNOWN_FORMAT = N_("There is no format {format!r} here: choose one of {formats}.")
_UNREADABLE_GRAPH = N_("Graphviz could not read this graph: {why}")

_GRAPHVIZ_FAULTS = {
    "system": N_("There is no picture: Graphviz could not be run on this graph ({why})."),
    "import": N_("There is no picture: pygraphviz could not be loaded ({why})."),
}
"""Fault in the worker → the sentence; a worker that cannot start has sentences of its own."""


FORMATS = ("svg", "png", "dot", "json", "plain", "xdot")
"""The formats of a picture: Graphviz writes all but ``png``, which is made from its SVG."""

STRAIGHT_ARROWS = {"splines": "line", "nslimit": "1", "mclimit": "0.1"}
"""Attributes of a graph that Graphviz draws in less time and memory."""

MAX_LINE = 44
"""Characters of a line of a sentence in a picture; it must be readable on a phone, too."""


class NoPictureError(RuntimeError):
    """Graphviz cannot draw this graph, or cannot run here at all; the text says why."""


def draw_source(source: str, format: str, engine: str = "dot") -> bytes:
    """Draw DOT source, and return the picture in the given format.

    Raises:
        ValueError: the format does not exist, or Graphviz cannot read the source.
        NoPictureError: Graphviz died of the source, also with straight arrows, or cannot run here.
    """
    if format not in FORMATS:
        raise ValueError(_(_UNKNOWN_FORMAT).format(format=format, formats=", ".join(FORMATS)))
    job = Job(source, format, engine)
    for tried in (job, replace(job, attributes=STRAIGHT_ARROWS)):
        try:
            return _read_answer(job, draw_in_worker(tried))
        except NoWorkerError as error:
            raise NoPictureError(str(error)) from None
        except WorkerDiedError:
            continue
    raise NoPictureError(_("There is no picture: Graphviz crashed on this graph, ran out of memory or took too long."))


def _read_answer(job: Job, answer: Answer) -> bytes:
    """Return the picture in the worker's answer, or raise its error as a sentence."""
    message = answer.content.decode(errors="replace") if answer.error else ""
    match answer.error:
        case "":
            return answer.content
        case "read":
            raise ValueError(_(_UNREADABLE_GRAPH).format(why=message))
        case "engine":
            why = _("there is no layout engine {engine}").format(engine=job.engine)
            raise ValueError(_(_UNREADABLE_GRAPH).format(why=why))
        case "format":
            raise ValueError(_(_UNKNOWN_FORMAT).format(format=job.format, formats=", ".join(FORMATS)))
        case _:
            raise NoPictureError(_(_GRAPHVIZ_FAULTS[answer.error]).format(why=message))


def make_sentence_svg(sentence: str) -> str:
    """Make an SVG that shows ``sentence``, in place of a picture that cannot be drawn.

    >>> make_sentence_svg("No <picture>.")[-37:]
    '>No &lt;picture&gt;.</text></g></svg>'
    """
    lines = wrap(sentence, MAX_LINE)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 {20 * len(lines) + 20}" class="hv-svg"'
    style = 'fill="currentColor" font-family="Helvetica, Arial, sans-serif" font-size="14"'
    return f"{head}><g {style}>{''.join(_make_text_lines(lines))}</g></svg>"


def _make_text_lines(lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield f'<text x="12" y="{24 + 20 * number}">{escape(line, quote=False)}</text>'
