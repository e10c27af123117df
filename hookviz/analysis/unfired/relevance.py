"""Which of the hooks that did not fire have to do with what ran."""

from hookviz.analysis.unfired.hooks import UnfiredHook, list_unfired_hooks
from hookviz.trace import TraceData

_UNRELATED_CAUSES = frozenset({
    "never_called", "never_called.compiled", "nothing_called", "not_in_graph", "stray", "detour", "no_pass", "no_step",
    "gone", "gone.module", "gone.weight_norm", "unseen",
})  # fmt: skip
"""Causes that say that what ran has nothing to do with the hook. If the hook is older than the recording, that is as it
should be: a notebook keeps the models and tensors of its earlier cells."""


def list_relevant_hooks(trace: TraceData) -> list[UnfiredHook]:
    """List the hooks of ``trace.unfired``, without older hooks that have nothing to do with what ran."""
    return [hook for hook in list_unfired_hooks(trace) if not (hook.is_older and hook.cause in _UNRELATED_CAUSES)]
