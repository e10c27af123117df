"""Hooks that fired in a way that one may not expect: early, without a gradient, or again in a recomputation."""

from collections.abc import Iterator

from hookviz.analysis.unfired.causes import Cause
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, StepRow, TraceData


def find_surprises(trace: TraceData) -> Iterator[tuple[int, Cause]]:
    """Yield the index of each hook with the first of its firings that is surprising."""
    surprising: set[int] = set()
    for index, row in enumerate(trace.rows):
        if row.hook is not None and row.kind in HOOK_KINDS and row.hook not in surprising:
            cause = _find_surprise(trace, index, row)
            if cause is not None:
                surprising.add(row.hook)
                yield row.hook, cause


def _find_surprise(trace: TraceData, index: int, row: StepRow) -> Cause | None:
    if row.kind == "full_backward_hook" and _is_empty(row.before):
        return Cause("early", step=index)
    if row.kind in FORWARD_HOOK_KINDS and row.call is not None and trace.calls[row.call].recomputed:
        return Cause("again", step=index)
    if row.kind == "multi_grad_hook" and isinstance(row.before, tuple) and None in row.before:
        return Cause("partly", {"missing": str(row.before.count(None))}, index)
    return Cause("undefined", step=index) if row.kind == "tensor_hook" and row.before is None else None


def _is_empty(values: object) -> bool:
    """Whether a hook was given no gradient at all: ``(None,)`` or ``()``."""
    return values is None or (isinstance(values, tuple) and all(value is None for value in values))
