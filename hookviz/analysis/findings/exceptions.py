"""Find the exceptions that ended passes and calls, and the hooks in which they were raised."""

from dataclasses import replace

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.parameters.places import CUTS, Place, PlaceFinder
from hookviz.support.messages import _
from hookviz.trace import StepRow, TraceData

_NO_GRAPH = "does not require grad and does not have a grad_fn"
"""What torch says of a backward pass without a graph."""
_FORWARD_KINDS = ("forward_pre_hook", "forward_hook")


def list_exceptions(trace: TraceData) -> list[Finding]:
    """List the exceptions; those of the same text in the same hook together."""
    steps: dict[tuple[int | None, str | None], list[int]] = {}
    for step in trace.lookup.steps_of_kinds("exception"):
        row = trace.rows[step]
        steps.setdefault((row.hook, row.error), []).append(step)
    return [_describe_exception(trace, found) for found in steps.values()]


def _describe_exception(trace: TraceData, steps: list[int]) -> Finding:
    row = trace.rows[steps[0]]
    hook = None if row.hook is None else trace.hook(row.hook)
    passes = tuple(dict.fromkeys(trace.rows[step].pass_id for step in steps))
    place = PlaceFinder(trace).find_before(steps[0]) if _NO_GRAPH in (row.error or "") else None
    finding = Finding(
        steps[0],
        "exception",
        trace.steps[steps[0]].sentence,
        _rate(trace, row, steps[-1]),
        passes,
        describe_passes(passes, trace),
        line=None if hook is None else hook.line,
        file=None if hook is None else hook.file,
        line_role="step" if hook is None else "hook",
        advice=_("Fix the exception first: what should have run after it did not."),
        hooks=() if hook is None else (hook,),
    )
    return finding if place is None else _add_place(finding, place)


def _add_place(finding: Finding, place: Place) -> Finding:
    """Say why there was no graph at which the pass could begin."""
    finding = replace(finding, cause=place.sentence, advice=_("Give the backward pass a graph: fix that first."))
    if place.line is None:
        return finding
    return replace(finding, line=place.line, file=place.file, line_role="cuts" if place.key in CUTS else "step")


def _rate(trace: TraceData, row: StepRow, last: int) -> str:
    """Rate an exception: an error if a hook ended a backward pass, or if it ended all that was recorded.

    A program that goes on has caught it, perhaps on purpose: a forward hook may raise to end the forward early.
    """
    is_last = last == len(trace.rows) - 1
    is_in_backward_hook = row.hook is not None and trace.hook_rows[row.hook].kind not in _FORWARD_KINDS
    return "error" if is_last or is_in_backward_hook else "remark"
