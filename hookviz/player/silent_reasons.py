"""Why hooks did not fire, as texts on their pins."""

from collections.abc import Mapping

from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.trace import TraceData

MAX_REASONS = 50
"""The most hooks that did not fire and have a pin with the reason; ``trace.hooks`` has all."""


def list_reasons(trace: TraceData) -> Mapping[int, str]:
    """Map the index of an unfired row to what the pin of its hook says.

    Hooks that have nothing to do with what ran have no pin.
    """
    hooks = [hook for hook in list_silent_hooks(trace) if hook.index is not None and hook.is_relevant]
    return {hook.index: hook.make_finding().text for hook in hooks[:MAX_REASONS] if hook.index is not None}
