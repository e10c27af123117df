"""Find clipping that no step uses, or that takes the scale of a GradScaler for the size of the gradients."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot, isclose, isinf

from hookviz.analysis.findings.finding import Certainty, Finding, put_line
from hookviz.analysis.findings.hooks.firings import group_firings, list_fired
from hookviz.analysis.findings.hooks.program_text import find_hook_line
from hookviz.analysis.findings.training.gradient_facts import is_on_device, is_rewritten, reads_scale
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.analysis.hook_effects import find_limit
from hookviz.support.messages import _, join_first, join_sentences
from hookviz.support.source_code import describe_place, read_place
from hookviz.trace import HOOK_KINDS, ClipRow, Hook, Step, TraceData
from hookviz.trace.values import Value, format_number

LEAST_SHARE = 0.01
"""A limit of at least this share of the scale was meant for scaled gradients."""


def find_useless_clips(facts: TrainingFacts) -> Iterator[Finding]:
    """Find calls that clip nothing, or gradients that no step uses.

    A line of the program is named only if that is so of each of its calls, but for the last one, after which the
    recording may end, and the first one, which may use up an iterator.
    """
    for rows in _group_by_line(facts):
        for find in (_find_empty, _find_after_hook, _find_untimely, _find_without_gradients):
            finding = find(facts, rows)
            if finding is not None:
                yield put_line(finding, read_place(rows[0].called_at), "clips")
                break


def _find_empty(facts: TrainingFacts, rows: Sequence[ClipRow]) -> Finding | None:
    """Find calls that were given no parameters, such as an iterator that something has walked before.

    A call that is given none each time may be for a module without parameters, such as a loss.
    """
    empty = [row for row in rows if row.given == 0]
    rounds = {facts.find_update_before(row.step) for row in empty}
    is_used_up = len(empty) == len(rows) - 1 and rows[0].given and len(rounds) > 1
    if not empty or not (len(empty) == len(rows) or is_used_up):
        return None
    step = facts.find_update(empty[0].step) or facts.trace.updates[0].step
    text = _("{name} was given no parameters in {count} of {total} calls: it clipped nothing.")
    finding = Finding(step, "clips_nothing", _insert_counts(text, rows, empty), "remark")
    if not is_used_up:
        return finding
    advice = _(
        "An iterator, such as parameters() or filter(), is empty once it was walked: give it a list, or call "
        "parameters() anew each time."
    )
    return replace(finding, severity="warning", advice=advice)


def _find_after_hook(facts: TrainingFacts, rows: Sequence[ClipRow]) -> Finding | None:
    """Find calls after passes during which a hook took the steps."""
    late = [row for row in rows if not _find_round(facts, row) and not _is_used(facts, row)]
    hooks = [_find_stepping_hook(facts, row) for row in late]
    hook = hooks[0] if hooks else None
    if hook is None or len(late) < len(rows) or None in hooks:
        return None
    text = _("{name} clipped no gradient that a step used, in {count} of {total} calls.")
    cause = _("{hook} ({where}) takes the steps inside the backward pass: they were taken before.")
    cause = cause.format(hook=hook.label, where=describe_place(hook.file, hook.line))
    step = facts.find_update_before(late[0].step)
    finding = Finding(step, "clips_nothing", _insert_counts(text, rows, late), "warning", cause=cause, hooks=(hook,))
    return replace(finding, advice=_("Clip in the hook, before it takes the step."))


def _is_used(facts: TrainingFacts, row: ClipRow) -> bool:
    """Whether a step follows a call that clipped something, before another pass writes gradients."""
    following = facts.find_update(row.step)
    return row.with_grad != 0 and following is not None and not facts.find_written(row.step, following)


def _find_stepping_hook(facts: TrainingFacts, row: ClipRow) -> Hook | None:
    """Return the hook that took the last step before a call, while a pass ran; None if no hook did.

    The step of a hook comes after what it did: it is the next one of a node after that of the optimizer.
    """
    update, rows = facts.find_update_before(row.step), facts.trace.rows
    if update is None:
        return None
    later = (one for one in rows[update + 1 : row.step] if one.pass_id == rows[update].pass_id)
    after = next((one for one in later if one.node is not None), None)
    is_hook = after is not None and after.kind in HOOK_KINDS
    return facts.trace.hook(after.hook) if is_hook and after is not None and after.hook is not None else None


def _find_untimely(facts: TrainingFacts, rows: Sequence[ClipRow]) -> Finding | None:
    """Find calls before the pass that writes the gradients, or after the step that uses them."""
    followed = [row for row in rows if facts.find_written(row.step, None)]
    if not followed or not all(_is_useless(facts, row) for row in followed):
        return None
    text = _(
        "{name} clipped no gradient that a step used, in {count} of {total} calls: each time it ran before the pass "
        "that wrote the gradients of the next step."
    )
    if facts.find_written(None, rows[0].step):
        followed = [row for row in rows if not _find_round(facts, row)]
        text = _(
            "{name} clipped no gradient that a step used, in {count} of {total} calls: each time it ran after the step."
        )
    sentence = _insert_counts(text, rows, followed)
    step = facts.find_update(followed[0].step) or facts.trace.updates[0].step
    advice = _("Call it between backward() and step().")
    return Finding(step, "clips_nothing", sentence, "warning", advice=advice)


def _find_without_gradients(facts: TrainingFacts, rows: Sequence[ClipRow]) -> Finding | None:
    """Find calls between pass and step whose parameters are others than those that the pass gave a gradient."""
    if not all(row.norm == 0 and _find_round(facts, row) for row in rows):
        return None
    text = _(
        "{name} clipped nothing in {count} of {total} calls: the parameters that it was given had no gradient, or one "
        "of 0."
    )
    return Finding(_find_round(facts, rows[0])[-1], "clips_nothing", _insert_counts(text, rows, rows), "remark")


def _insert_counts(text: str, rows: Sequence[ClipRow], found: Sequence[ClipRow]) -> str:
    """Put the name of the function, and of how many calls something is so, into a sentence."""
    return text.format(name=rows[0].name, count=f"{len(found):,}", total=f"{len(rows):,}")


def _find_round(facts: TrainingFacts, row: ClipRow) -> list[int]:
    """Return the steps that wrote gradients between a call and the step of an optimizer before it."""
    return facts.find_written(facts.find_update_before(row.step), row.step)


def _group_by_line(facts: TrainingFacts) -> list[list[ClipRow]]:
    """Group the calls that clip by their lines, without those that only measure: their limit is infinite."""
    lines: dict[tuple[str | None, str], list[ClipRow]] = {}
    if facts.updates and not facts.lacks_passes:
        for row in facts.trace.clips:
            if not isinf(row.limit):
                lines.setdefault((row.called_at, row.name), []).append(row)
    return list(lines.values())


def _is_useless(facts: TrainingFacts, row: ClipRow) -> bool:
    """Whether no pass ran between a call and the step before it, and one between the call and the step after it.

    What the call clipped is lost: each step after it uses gradients that began at None or 0 since.
    """
    if _find_round(facts, row):
        return False
    following = facts.find_update(row.step)
    return following is not None and bool(facts.find_written(row.step, following)) and is_rewritten(facts, row.step)


def find_scaled_clips(facts: TrainingFacts) -> Iterator[Finding]:
    """Find calls that clip gradients while these carry the scale of a GradScaler."""
    for rows in _group_by_line(facts) if not reads_scale(facts) else ():
        scaled = [(row, scale) for row in rows if (scale := _find_scale_at(facts, row)) is not None]
        if not scaled:
            continue
        row, scale = scaled[0]
        text = _("{name} clipped gradients that were scaled, in {count} of {total} calls.")
        counted = _insert_counts(text, rows, [row for row, _scale in scaled])
        sentence = join_sentences([counted, _describe_limit(row.limit, scale)])
        step = facts.find_written(None, row.step)[-1]
        advice = _("Call scaler.unscale_(optimizer) before it.")
        certainty: Certainty = "likely" if row.norm is None else "proven"
        finding = Finding(step, "clips_scaled", sentence, "warning", advice=advice, certainty=certainty)
        yield put_line(finding, read_place(row.called_at), "clips")


def _describe_limit(limit: float, scale: float) -> str:
    text = _("With a scale of {scale}, a limit of {limit} is one of {real} for the gradients of the loss.")
    real = format_number(limit / scale, 4)
    return text.format(scale=format_number(scale, 6), limit=format_number(limit, 4), real=real)


def _find_scale_at(facts: TrainingFacts, row: ClipRow) -> float | None:
    """Return the scale that gradients had at a call that clips; None if they had none, or the limit has it, too."""
    written = _find_round(facts, row)
    scale = facts.find_scale(written[-1]) if written else None
    if scale is None or row.limit >= scale * LEAST_SHARE or not _found_scaled(facts, row, written, scale):
        return None
    unscaled = facts.trace.lookup.steps_of_kinds("unscale")
    return scale if bisect_left(unscaled, written[-1]) == bisect_left(unscaled, row.step) else None


def _found_scaled(facts: TrainingFacts, row: ClipRow, written: list[int], scale: float) -> bool:
    """Whether the norm that a call found is that of scaled gradients, as passes had left them.

    It was given those of all leaves, or of all parameters of one optimizer. On a device the norm is not known.
    """
    if row.norm is None:
        return row.name == "clip_grad_norm_" and is_on_device(facts, written[-1])
    held = (facts.list_held(optimizer) for optimizer in facts.updates)
    groups = [
        [each for one in numbers for each in facts.accumulations_between(one, written[0], row.step)[-1:]]
        for numbers in held
    ]
    norms = [
        [each.after for each in group] for group in groups if _has_scale(facts, [each.step for each in group], scale)
    ]
    if _has_scale(facts, written, scale):
        norms.append(facts.list_last_norms(written))
    return any(None not in one and isclose(row.norm, hypot(*filter(None, one)), rel_tol=0.01) for one in norms)


def _has_scale(facts: TrainingFacts, written: Sequence[int], scale: float) -> bool:
    return bool(written) and all(facts.find_scale(step) == scale for step in written)


# -- hooks that clip scaled gradients


def find_scaled_hooks(facts: TrainingFacts) -> Iterator[Finding]:
    """Find tensor hooks whose limit is tiny for the gradients of the loss, since these are scaled when they clip."""
    if not facts.trace.scales or reads_scale(facts):
        return
    for steps in group_firings(facts.trace, ["tensor_hook"]).values():
        clips = {step: limits for step in steps if (limits := _find_scaled_limit(facts, step)) is not None}
        if clips:
            yield _describe_clips(facts.trace, clips)


def _find_scaled_limit(facts: TrainingFacts, step: int) -> tuple[float, float] | None:
    """Return the scale of the gradient that a hook clipped, and its limit, if that is tiny for it."""
    scale, limit = facts.find_scale(step), _find_limit_of(facts.trace.steps[step])
    return None if scale is None or limit is None or limit >= scale * LEAST_SHARE else (scale, limit)


def _find_limit_of(step: Step) -> float | None:
    """Return the limit of a hook that clipped; None if its text does not say that, as that of one with sign()."""
    before, after = step.before, step.after
    text = (step.hook.source_.text or "") if step.hook is not None else ""
    if not ("clamp" in text or "clip" in text) or not isinstance(before, Value) or not isinstance(after, Value):
        return None
    return find_limit(before, after)


def _describe_clips(trace: TraceData, clips: dict[int, tuple[float, float]]) -> Finding:
    step, (scale, limit) = next(iter(clips.items()))
    hooks = list_fired(trace, clips)
    text = _("{hook} on {on} clipped gradients that were scaled.")
    clipped = text.format(hook=hooks[0].label, on=join_first([hook.on for hook in hooks]))
    sentence = join_sentences([clipped, _describe_limit(limit, scale)])
    advice = _("Clip after scaler.unscale_(optimizer), or multiply the limit by scaler.get_scale() in the hook.")
    finding = Finding(step, "clips_scaled", sentence, "warning", advice=advice, hooks=hooks)
    return put_line(finding, *find_hook_line(hooks[0]))
