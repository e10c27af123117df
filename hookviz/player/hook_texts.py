"""The hooks of a player: their names and sources, the table of their firings, and why others did not fire."""

from collections.abc import Iterable, Mapping, Sequence

from hookviz.analysis.findings.hooks.silent_hooks import ExplainedHook
from hookviz.analysis.hook_effects import HookEffect, HookEffects
from hookviz.player.payload import FiringRow, HookFields, HookText, SilentHook
from hookviz.support.messages import N_, _
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, Step, TraceData
from hookviz.trace.hook_facts import name_of_kind
from hookviz.trace.hooks import name_of_effect
from hookviz.trace.sentences import format_hook_position, format_values
from hookviz.trace.values import are_same_values

MAX_FIRINGS = 1_000
"""The most rows of the table of firings."""
VALUE_WIDTH = 16
"""The most characters of a value in the table of firings."""
MAX_REASONS = 50
"""The most hooks that did not fire and have a pin with the reason; ``trace.hooks`` has all."""


def hook_text(trace: TraceData, index: int) -> HookText:
    """Return the name, location and source of the hook at ``index``."""
    hook, row = trace.hook(index), trace.hook_rows[index]
    return {
        "name": hook.label,
        "where": hook.where,
        "source": row.text,
        "no_source": _("The source of {name} is not available.").format(name=hook.name) if row.text is None else None,
        "first_line": None if row.text is None else row.line,
        "return_line": row.return_line,
    }


def describe_hooks(
    effects: HookEffects, steps: Sequence[Step], trace: TraceData, reasons: Mapping[int, str]
) -> HookFields:
    """Describe what the hooks did in ``steps``, and those that did not fire; ``reasons``: unfired row → why."""
    firings = [(step, effects.describe(step)) for step in steps if step.kind in HOOK_KINDS]
    silent: list[SilentHook] = [
        {"name": trace.unfired_rows[row].source.label, "on": trace.unfired_rows[row].on, "reason": reason}
        for row, reason in reasons.items()
    ]
    return {
        "firings": [_firing_row(*firing) for firing in firings[:MAX_FIRINGS]],
        "changing": [step.index for step, effect in firings if effect.changed],
        "silent": silent,
        "summary": _summarise(firings, len(silent)),
    }


def _summarise(firings: Sequence[tuple[Step, HookEffect]], silent: int) -> list[str]:
    """Say how many calls of hooks changed something and how many looked, and how many hooks did not fire."""
    changing = [step for step, effect in firings if effect.changed]
    if not firings:
        text = N_("{count} hooks did not fire") if silent > 1 else N_("1 hook did not fire")
        return [_(text).format(count=f"{silent:,}")] if silent else []
    numbers = {"changed": f"{len(changing):,}", "total": f"{len(firings):,}"}
    is_forward = {step.kind in (*FORWARD_HOOK_KINDS, *STEP_HOOK_KINDS) for step in changing}
    if not changing:
        text = N_("No hook call changed anything")
    elif True in is_forward:
        text = (
            N_("{changed} of {total} hook calls changed something")
            if len(firings) > 1
            else N_("1 hook call changed something")
        )
    else:
        text = (
            N_("{changed} of {total} hook calls changed a gradient")
            if len(firings) > 1
            else N_("1 hook call changed a gradient")
        )
    looked = len(firings) - len(changing)
    parts = [_(text).format(**numbers)]
    parts += [_("{count} only looked").format(count=f"{looked:,}")] if looked else []
    parts += [_("{count} did not fire").format(count=f"{silent:,}")] if silent else []
    return parts


def _firing_row(step: Step, effect: HookEffect) -> FiringRow:
    hook = step.hook
    assert hook is not None  # a firing has its hook
    # AccumulateGrad sends no gradient onward, so a hook that runs after it has none to change.
    has_gradient = step.before != () or step.after != ()
    before, after = format_values(step.before, VALUE_WIDTH), format_values(step.after, VALUE_WIDTH)
    sign = "=" if are_same_values(step.before, step.after) else "→"
    change = f"{before} {sign} {after}" if has_gradient else ""
    return {
        "step": step.index,
        "hook": f"{format_hook_position(hook.place)} {hook.label}",
        "kind": name_of_kind(hook.kind),
        "on": step.on,
        "change": change,
        "effect": name_of_effect(step.effect),
        "effect_kind": step.effect or "",
        "name": hook.label,
        "changed": effect.changed,
        "short": effect.short,
    }


def list_reasons(silent_hooks: Iterable[ExplainedHook]) -> Mapping[int, str]:
    """Map the index of an unfired row to what the pin of its hook, one of ``silent_hooks``, says.

    Hooks that have nothing to do with what ran have no pin.
    """
    hooks = [hook for hook in silent_hooks if hook.index is not None and hook.is_relevant]
    return {hook.index: hook.make_finding().text for hook in hooks[:MAX_REASONS] if hook.index is not None}
