"""The outline of a run: what timeline and picture need of every step before its words are sent."""

from collections.abc import Mapping, Sequence

from hookviz.picture.grouping.activity import find_arrival
from hookviz.player.payload import Outline
from hookviz.player.step_words import glyph_of
from hookviz.support.messages import _
from hookviz.trace import StepRow, TraceData
from hookviz.trace.values import format_number

LOSS_DIGITS = 3
"""Significant digits of a loss in the titles of passes."""


def make_outline(
    trace: TraceData,
    rows: Sequence[StepRow],
    views: Mapping[int, str],
    hooks: Mapping[int, int],
    questions: dict[str, list[int]],
    glyph_kinds: Sequence[str] | None = None,
) -> Outline:
    """Make the outline of the steps ``rows``, the first ones of ``trace``.

    Args:
        trace: the trace that has the steps.
        rows: the steps that the player shows.
        views: pass → the name of its top-level picture, for all passes of the steps.
        hooks: hook row → index in ``Content.hooks``.
        questions: step → the questions before it, as in ``Outline``.
        glyph_kinds: the kind of each step whose glyph it gets; None takes its own.
    """
    pictures = {pass_id: index for index, pass_id in enumerate(views)}
    arrivals = [find_arrival(trace, step) for step in range(len(rows))]
    kinds = [row.kind for row in rows]
    return {
        "kind": [*kinds],
        "glyph": [glyph_of(kind) for kind in glyph_kinds or kinds],
        "picture": [pictures[row.pass_id] for row in rows],
        "hook": [-1 if row.hook is None else hooks[row.hook] for row in rows],
        "norm": [None if arrival is None else arrival.display_norm for arrival in arrivals],
        "questions": questions,
        "views": [*views.values()],
        "pass_numbers": [*map(trace.pass_number, views)],
        "losses": [_format_loss(trace, pass_id) for pass_id in views],
        "overview": "",
    }


def _format_loss(trace: TraceData, pass_id: int) -> str:
    """Write the number at which a pass starts; empty if it is not known."""
    if pass_id not in trace.losses:
        return ""
    loss = trace.losses[pass_id]
    return _("NaN or Inf") if loss is None else format_number(loss, LOSS_DIGITS)
