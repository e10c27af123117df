"""Find tensor hooks that clip gradients while these carry the scale of a GradScaler."""

from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.training.gradient_clipping import LEAST_SHARE
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.analysis.hook_effects import find_limit
from hookviz.support.messages import _, join_first
from hookviz.support.source_code import Source
from hookviz.trace import Step
from hookviz.trace.values import Value, format_number

_MAX_NAMED = 4


def find_scaled_hooks(facts: TrainingFacts) -> Iterator[Finding]:
    """Find tensor hooks whose limit is tiny for the gradients of the loss, since these are scaled when they clip."""
    if not facts.trace.scales:
        return
    groups: dict[Source, list[tuple[Step, float, float]]] = {}
    for number in facts.trace.lookup.steps_of_kinds("tensor_hook"):
        step, scale = facts.trace.steps[number], facts.find_scale(number)
        limit = _find_limit_of(step)
        if step.hook is not None and scale is not None and limit is not None and limit < scale * LEAST_SHARE:
            groups.setdefault(step.hook.source_, []).append((step, scale, limit))
    for group in groups.values():
        yield _describe_clips(group)


def _find_limit_of(step: Step) -> float | None:
    before, after = step.before, step.after
    return find_limit(before, after) if isinstance(before, Value) and isinstance(after, Value) else None


def _describe_clips(group: list[tuple[Step, float, float]]) -> Finding:
    step, scale, limit = group[0]
    hooks = tuple({one.hook.on: one.hook for one, *_others in group if one.hook is not None}.values())
    sentence = _(
        "{hook} on {on} clipped gradients that were scaled: with a scale of {scale}, its limit of {limit} is one of "
        "{real} for the gradients of the loss."
    ).format(
        hook=hooks[0].label,
        on=join_first([hook.on for hook in hooks], _MAX_NAMED),
        scale=format_number(scale, 6),
        limit=format_number(limit, 4),
        real=format_number(limit / scale, 4),
    )
    advice = _("Clip after scaler.unscale_(optimizer), or multiply the limit by scaler.get_scale() in the hook.")
    finding = Finding(step.index, "clips_scaled", sentence, "warning", advice=advice, hooks=hooks)
    return replace(finding, file=hooks[0].file, line=hooks[0].line, line_role="hook")
