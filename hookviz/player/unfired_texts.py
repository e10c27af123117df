"""The hooks that did not fire, as texts: the list below the table of firings, and the reasons on pins."""

from collections.abc import Mapping
from functools import cached_property

from hookviz.analysis.unfired import UnfiredHook, list_relevant_hooks
from hookviz.player.payload import RunContent, UnfiredText
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import TraceData
from hookviz.trace.hooks import name_of_kind

MAX_UNFIRED = 50
"""The most hooks that the list names, and that have a reason on their pins; ``trace.unfired`` has all."""


class UnfiredTexts:
    """The texts about the hooks of a trace that did not fire, except those that have nothing to do with what ran."""

    def __init__(self, trace: TraceData) -> None:
        hooks = [hook for hook in list_relevant_hooks(trace) if not hook.fired]
        self._listed, self._left_out = hooks[:MAX_UNFIRED], len(hooks[MAX_UNFIRED:])

    @cached_property
    def reasons(self) -> Mapping[int, str]:
        """Index of an unfired row → what the pin of its hook says."""
        return {hook.index: _say_why(hook) for hook in self._listed if hook.index is not None}

    def add_to(self, run: RunContent) -> None:
        """Add the list to ``run`` unless it is empty."""
        if self._listed:
            run["unfired"] = [_make_row(hook) for hook in self._listed]
        if self._left_out:
            text = (
                N_("{count} more hooks did not fire: trace.unfired lists all of them.")
                if self._left_out > 1
                else N_("1 more hook did not fire: trace.unfired lists all of them.")
            )
            run["unfired_more"] = _(text).format(count=f"{self._left_out:,}")


def _say_why(hook: UnfiredHook) -> str:
    fact = _("{hook} on {on} did not fire.").format(hook=hook.hook.label, on=hook.on)
    return join_sentences([fact, hook.sentence, hook.advice])


def _make_row(hook: UnfiredHook) -> UnfiredText:
    return {
        "step": -1 if hook.step is None else hook.step,
        "hook": hook.hook.label,
        "kind": name_of_kind(hook.hook.kind),
        "on": hook.on,
        "why": hook.sentence,
        "advice": hook.advice,
    }
