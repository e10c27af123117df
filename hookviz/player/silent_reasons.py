"""Why hooks did not fire, as texts on their pins."""

from collections.abc import Iterable, Mapping

from hookviz.analysis.findings.hooks.silent_hooks import SilentHook

MAX_REASONS = 50
"""The most hooks that did not fire and have a pin with the reason; ``trace.hooks`` has all."""


def list_reasons(silent_hooks: Iterable[SilentHook]) -> Mapping[int, str]:
    """Map the index of an unfired row to what the pin of its hook, one of ``silent_hooks``, says.

    Hooks that have nothing to do with what ran have no pin.
    """
    hooks = [hook for hook in silent_hooks if hook.index is not None and hook.is_relevant]
    return {hook.index: hook.make_finding().text for hook in hooks[:MAX_REASONS] if hook.index is not None}
