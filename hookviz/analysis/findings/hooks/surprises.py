"""Hooks that fired in a way that one may not expect: early, without a gradient, or again in a recomputation."""

from collections.abc import Container, Iterator

from hookviz.analysis.findings.hooks.cause import Cause
from hookviz.analysis.findings.hooks.firings import iter_firings
from hookviz.analysis.findings.hooks.program_text import find_return
from hookviz.analysis.findings.parameters.none_gradients import NoneGradients, is_without_gradient
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, HookRow, StepRow, TraceData


def find_surprises(trace: TraceData) -> Iterator[tuple[int, Cause]]:
    """Yield the index of each hook with the first of its firings that is surprising."""
    surprising: set[int] = set()
    gradients = NoneGradients(trace)
    for step, index, hook in iter_firings(trace, *HOOK_KINDS):
        if index not in surprising:
            row = trace.rows[step]
            cause = _find_surprise(trace, step, row, hook) or _find_unwritten(gradients, step, row)
            if cause is not None:
                surprising.add(index)
                yield index, _add_place(cause, gradients, row)
    yield from _find_ignored(trace, surprising)


def _find_ignored(trace: TraceData, others: Container[int]) -> Iterator[tuple[int, Cause]]:
    """Yield the multi-grad hooks that return a value, but for those with another surprise."""
    first: dict[int, int] = {}
    for step, index, _row in iter_firings(trace, "multi_grad_hook"):
        first.setdefault(index, step)
    for index, step in first.items():
        if index not in others and find_return(trace.hook(index)) is not None:
            yield index, Cause("ignored", step=step)


def _find_surprise(trace: TraceData, index: int, row: StepRow, hook: HookRow) -> Cause | None:
    if hook.until is not None and hook.until <= index and row.kind in _KEPT_KINDS:
        return Cause("kept", {"where": hook.removed_at or ""}, index)
    if row.kind in _KEPT_KINDS:
        return _find_module_surprise(index, row)
    if row.kind in FORWARD_HOOK_KINDS and row.call is not None and trace.calls[row.call].recomputed:
        return Cause("again", step=index)
    if row.kind == "step_pre_hook" and _precedes_pass(trace, index, row):
        return Cause("before_closure", step=index)
    if row.kind == "multi_grad_hook" and isinstance(row.before, tuple) and None in row.before:
        return Cause("partly", {"missing": str(row.before.count(None))}, index)
    return Cause("undefined", step=index) if row.kind == "tensor_hook" and row.before is None else None


_KEPT_KINDS = ("full_backward_hook", "full_backward_pre_hook")
"""The kinds of hooks that the graph of a call keeps."""


def _find_module_surprise(index: int, row: StepRow) -> Cause | None:
    """Find out whether a backward hook of a module got no gradient at all.

    None for one of several outputs is ordinary: the loss does not use it, or it is not a tensor. So is None for an
    input that is not a tensor; for a tensor that needs no gradient torch passes zeros, unless no input needs one.
    """
    is_pre_hook = row.kind == "full_backward_pre_hook"
    grad_output = row.before if is_pre_hook else tuple(value for _, _, value in row.parts)
    if is_without_gradient(grad_output) and grad_output != ():
        return Cause("undefined", step=index)
    return None if is_pre_hook or not is_without_gradient(row.before) else Cause("early", step=index)


def _precedes_pass(trace: TraceData, index: int, row: StepRow) -> bool:
    """Return whether the pass of a step began after the hook, in a closure that the step was given."""
    for later in (trace.rows[following] for following in range(index + 1, len(trace.rows))):
        if later.kind == "optimizer_step" and later.optimizer == row.optimizer:
            return False
        if later.kind == "seed":
            return later.pass_id == row.pass_id
    return False


def _find_unwritten(gradients: NoneGradients, index: int, row: StepRow) -> Cause | None:
    """Find out whether a post-accumulate hook ran though no gradient arrived: torch calls it all the same."""
    is_unwritten = row.kind == "post_accumulate_hook" and gradients.culprit(row.pass_id, row.node) is not None
    return Cause("undefined.grad", step=index) if is_unwritten else None


def _add_place(cause: Cause, gradients: NoneGradients, row: StepRow) -> Cause:
    """Add the node that returned None, if it is known."""
    if not cause.key.startswith("undefined"):
        return cause
    step = gradients.culprit(row.pass_id, row.node)
    return cause if step is None else cause._replace(place=gradients.place(step))
