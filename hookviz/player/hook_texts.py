"""The hooks of a player: their names and sources, and the table of their firings."""

from collections.abc import Iterable

from hookviz.player.payload import FiringRow, HookText
from hookviz.support.messages import _
from hookviz.trace import HOOK_KINDS, Step, TraceData
from hookviz.trace.hook_facts import name_of_kind
from hookviz.trace.hooks import name_of_effect
from hookviz.trace.sentences import format_hook_position, format_values

VALUE_WIDTH = 16
"""The most characters of a value in the table of firings."""


def hook_text(trace: TraceData, index: int) -> HookText:
    """Return the name, location and source of the hook at ``index``."""
    hook, row = trace.hook(index), trace.hook_rows[index]
    return {
        "name": hook.label,
        "where": hook.where,
        "source": row.text,
        "no_source": _("The source of {name} is not available.").format(name=hook.name) if row.text is None else None,
        "first_line": None if row.text is None else row.line,
        "return_line": row.mark,
    }


def firing_rows(steps: Iterable[Step]) -> list[FiringRow]:
    """Return a row of the table of firings for each step in which a hook ran."""
    return [_firing_row(step) for step in steps if step.kind in HOOK_KINDS]


def _firing_row(step: Step) -> FiringRow:
    hook = step.hook
    assert hook is not None  # a firing has its hook
    # AccumulateGrad sends no gradient onward, so a hook that runs after it has none to change.
    has_gradient = step.before != () or step.after != ()
    before, after = format_values(step.before, VALUE_WIDTH), format_values(step.after, VALUE_WIDTH)
    change = f"{before} → {after}" if has_gradient else ""
    return {
        "step": step.index,
        "hook": f"{format_hook_position(hook.place)} {hook.label}",
        "kind": name_of_kind(hook.kind),
        "on": step.on,
        "change": change,
        "effect": name_of_effect(step.effect),
        "effect_kind": step.effect or "",
    }
