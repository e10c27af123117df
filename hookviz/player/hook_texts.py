"""The hooks of a player: what each is called and where it was written, and the table of their firings."""

from collections.abc import Iterable

from hookviz.player.payload import Firing, HookText
from hookviz.player.wording import Wording
from hookviz.support.messages import say
from hookviz.trace import HOOK_KINDS, Step, TraceData
from hookviz.trace.sentences import format_hook_position, format_values

ROOM = 16
"""Characters of a value in the table."""


def hooks_in(trace: TraceData) -> list[int]:
    """The rows of the hooks that steps are about, in order."""
    return sorted({row.hook for row in trace.rows if row.hook is not None})


def hook_text(trace: TraceData, index: int, wording: Wording) -> HookText:
    """A hook's name, place and source."""
    hook, row = trace.hook(index), trace.hook_rows[index]
    return {
        "name": hook.label,
        "where": wording(hook.where),
        "source": row.text,
        "missing": wording(say("hook.source.none", name=hook.name)) if row.text is None else None,
        "first": None if row.text is None else row.line,
        "mark": row.mark,
    }


def firings(steps: Iterable[Step], wording: Wording) -> list[Firing]:
    """The table of hooks, row by row."""
    return [_firing(step, wording) for step in steps if step.kind in HOOK_KINDS]


def _firing(step: Step, wording: Wording) -> Firing:
    hook = step.hook
    assert hook is not None  # a firing has its hook
    nothing = step.before == () == step.after  # a hook behind an AccumulateGrad, from which nothing goes out
    before, after = format_values(step.before, ROOM), format_values(step.after, ROOM)
    change = "" if nothing else say("value.change", before=before, after=after)
    return {
        "step": step.index,
        "hook": f"{format_hook_position(hook.place)} {hook.label}",
        "kind": wording(say(f"census.{hook.kind}")),
        "on": wording(step.on),
        "change": wording(change),
        "effect": wording(say(f"effect.{step.effect}")),
    }
