"""Drawing DOT source: if Graphviz dies of a graph, it is drawn by a simpler method, and the picture says so."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from typing import NamedTuple

from hookviz.picture import graphviz_client
from hookviz.picture.graphviz_client import Answer, Job, NoWorkerError, WorkerDiedError
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

MAX_LINE = 44
"""Characters of a line of a sentence in a picture; it must be readable on a phone, too."""


class NoPictureError(RuntimeError):
    """Graphviz cannot draw this graph by any method, or cannot run here at all; the text says why."""


class DrawingMethod(NamedTuple):
    """A method to draw a graph."""

    name: str
    attributes: Mapping[str, str] = {}
    """Attributes of the whole graph that overrule its own."""
    drop_invisible_edges: bool = False
    is_quick: bool = False
    """Whether it is worth trying after another method took too long."""


_STRAIGHT_LINES = {"splines": "line", "nslimit": "1", "mclimit": "0.1"}
USUAL_METHOD = DrawingMethod("usual")
SIMPLER_METHODS = (
    DrawingMethod("other ranks", {"newrank": "true"}),
    DrawingMethod("modules in another order", drop_invisible_edges=True),
    DrawingMethod("straight arrows", _STRAIGHT_LINES, drop_invisible_edges=True, is_quick=True),
    DrawingMethod(
        "no frames of modules",
        {**_STRAIGHT_LINES, "clusterrank": "none"},
        drop_invisible_edges=True,
        is_quick=True,
    ),
)
"""Fallbacks, from the one that loses least to the one that loses most; each draws graphs on which the others crash."""


class _Outcome(NamedTuple):
    """The result of drawing a source: a picture, or an error."""

    picture: bytes = b""
    method: str = ""
    """The name of the method that drew it."""
    source_error: str = ""
    """What is wrong with the source."""
    failure: str = ""
    """Why there is no picture although nothing is wrong with the source."""
    can_be_cached: bool = True
    """Whether another try would give the same."""


def draw_source(source: str, format: str, engine: str = "dot") -> bytes:
    """Draw DOT source, and return the picture in the given format.

    Raises:
        ValueError: the format does not exist, or Graphviz cannot read the source.
        NoPictureError: Graphviz died of the source with every method, or cannot run here.
    """
    if format not in FORMATS:
        raise ValueError(_(_UNKNOWN_FORMAT).format(format=format, formats=", ".join(FORMATS)))
    job = Job(source, format, engine)
    outcome = _outcomes.get(job) or _draw_by_any_method(job)
    if outcome.can_be_cached:
        _cache_outcome(job, outcome)
    if outcome.source_error:
        raise ValueError(outcome.source_error)
    if outcome.failure:
        raise NoPictureError(outcome.failure)
    return outcome.picture


_outcomes: dict[Job, _Outcome] = {}
"""The latest outcomes: a picture is often shown and then saved. Failures are cached as well, since they take long."""
MAX_OUTCOMES = 32


def _cache_outcome(job: Job, outcome: _Outcome) -> None:
    _outcomes[job] = outcome
    for oldest in list(_outcomes)[:-MAX_OUTCOMES]:
        _outcomes.pop(oldest, None)


def _draw_by_any_method(job: Job) -> _Outcome:
    """Draw by the usual method; if the worker dies of that, by simpler ones."""
    timed_out = False
    for method in (USUAL_METHOD, *SIMPLER_METHODS):
        if timed_out and not method.is_quick:
            continue
        simpler = replace(job, attributes=method.attributes, drop_invisible_edges=method.drop_invisible_edges)
        try:
            return _read_answer(job, graphviz_client.draw_in_worker(simpler))._replace(method=method.name)
        except NoWorkerError as error:
            return _Outcome(failure=str(error), can_be_cached=False)
        except WorkerDiedError as died:
            timed_out = died.cause == "time"
    return _Outcome(
        failure=_(
            "There is no picture: Graphviz crashed on this graph, ran out of memory or took too long, in "
            "every layout that hookviz tried. The recording is complete without it."
        )
    )


def _read_answer(job: Job, answer: Answer) -> _Outcome:
    """Turn the worker's answer into an outcome with sentences for its errors."""
    message = answer.content.decode(errors="replace") if answer.error else ""
    match answer.error:
        case "":
            return _Outcome(answer.content)
        case "read":
            return _Outcome(source_error=_(_UNREADABLE_GRAPH).format(why=message))
        case "engine":
            return _Outcome(
                source_error=_(_UNREADABLE_GRAPH).format(
                    why=_("there is no layout engine {engine}").format(engine=job.engine)
                )
            )
        case "format":
            return _Outcome(source_error=_(_UNKNOWN_FORMAT).format(format=job.format, formats=", ".join(FORMATS)))
        case _:
            return _Outcome(failure=_(_GRAPHVIZ_FAULTS[answer.error]).format(why=message), can_be_cached=False)


def make_sentence_svg(sentence: str) -> str:
    """Make an SVG that shows ``sentence``, in place of a picture that cannot be drawn.

    >>> make_sentence_svg("No <picture>.")[-37:]
    '>No &lt;picture&gt;.</text></g></svg>'
    """
    texts = "".join(_make_text_lines(sentence))
    height = 20 * len(_wrap_lines(sentence)) + 20
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 360 {height}" class="hv-svg"'
    style = 'fill="currentColor" font-family="Helvetica, Arial, sans-serif" font-size="14"'
    return f"{head}><g {style}>{texts}</g></svg>"


def _make_text_lines(sentence: str) -> Iterator[str]:
    for number, line in enumerate(_wrap_lines(sentence)):
        yield f'<text x="12" y="{24 + 20 * number}">{escape(line, quote=False)}</text>'


def _wrap_lines(sentence: str) -> list[str]:
    return wrap(sentence, MAX_LINE)
