"""Which of the hooks that did not fire have to do with what ran."""

from hookviz.analysis.unfired.hooks import UnfiredHook, list_unfired_hooks
from hookviz.trace import TraceData

_UNRELATED_CAUSES = frozenset({
    "never_called", "never_called.compiled", "nothing_called", "not_in_graph", "stray", "detour", "no_pass", "no_step",
    "weight_norm", "unseen",
})  # fmt: skip
"""Causes that say that what ran has nothing to do with the hook. If the hook is older than the recording, that is as it
should be: a notebook keeps the models and tensors of its earlier cells."""


def list_relevant_hooks(trace: TraceData) -> list[UnfiredHook]:
    """List the hooks of ``trace.unfired``, without those of which the recording cannot say anything.

    These are older hooks that have nothing to do with what ran, and hooks in the part that was left out on demand.
    """
    hooks = list_unfired_hooks(trace)
    return [
        hook for hook in hooks if hook.cause != "limited" and not (hook.is_older and hook.cause in _UNRELATED_CAUSES)
    ]
