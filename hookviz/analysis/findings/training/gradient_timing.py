"""Find clipping and steps at the wrong moment: before the pass, after the step, or while gradients are scaled."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from math import hypot, isinf, sqrt

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.training.program_calls import add_update_line, find_pass_line, put_line, read_place
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import N_, _
from hookviz.trace import ClipRow, UpdateRow
from hookviz.trace.values import format_number

_LEAST_SHARE = 0.01
"""A limit of at least this share of the scale was meant for scaled gradients."""


def find_useless_clips(facts: TrainingFacts) -> Iterator[Finding]:
    """Find calls that clip gradients after they were used, or before a pass writes them.

    A line of the program is named only if that is so of each of its calls that was followed by another pass.
    """
    for rows in _group_by_line(facts):
        followed = [row for row in rows if facts.find_written(row.step, None)]
        if followed and all(_is_useless(facts, row) for row in followed):
            yield _make_useless(facts, rows, followed)
        elif all(row.norm == 0 and _find_round(facts, row) for row in rows):
            text = _(
                "{name} clipped nothing in each of {total} calls: the parameters that it was given had no gradient, or "
                "one of 0."
            )
            step = _find_round(facts, rows[0])[-1]
            sentence = text.format(name=rows[0].name, total=f"{len(rows):,}")
            yield put_line(Finding(step, "clips_nothing", sentence, "remark"), read_place(rows[0].called_at), "clips")


def _make_useless(facts: TrainingFacts, rows: list[ClipRow], followed: list[ClipRow]) -> Finding:
    """Make the finding of calls that were followed by another pass, and of which no step uses what they did."""
    text = N_("{name} clipped nothing in {count} of {total} calls: it ran before the pass that writes the gradients.")
    if any(row.norm != 0 for row in followed):
        text = N_(
            "{name} clipped no gradient that a step used, in {count} of {total} calls: each time it ran before the "
            "pass that wrote the gradients of the next step."
        )
    sentence = _(text).format(name=rows[0].name, count=f"{len(followed):,}", total=f"{len(rows):,}")
    step = facts.find_update(followed[0].step) or facts.trace.updates[0].step
    advice = _("Call it between backward() and step().")
    finding = Finding(step, "clips_nothing", sentence, "warning", advice=advice)
    return put_line(finding, read_place(rows[0].called_at), "clips")


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

    That pass has to begin with gradients that are None or 0: otherwise it adds to the ones that were clipped.
    """
    if _find_round(facts, row):
        return False
    following = facts.find_update(row.step)
    written = facts.find_written(row.step, following)
    return following is not None and bool(written) and facts.begins_at_zero(written)


def find_scaled_clips(facts: TrainingFacts) -> Iterator[Finding]:
    """Find calls that clip gradients while these carry the scale of a GradScaler."""
    for rows in _group_by_line(facts):
        scaled = [(row, scale) for row in rows if (scale := _find_scale_at(facts, row)) is not None]
        if not scaled:
            continue
        row, scale = scaled[0]
        sentence = _(
            "{name} clipped gradients that were scaled, in {count} of {total} calls: with a scale of {scale}, its "
            "limit of {limit} is one of {real} for the gradients of the loss."
        ).format(
            name=row.name,
            count=f"{len(scaled):,}",
            total=f"{len(rows):,}",
            scale=format_number(scale, 6),
            limit=format_number(row.limit, 4),
            real=format_number(row.limit / scale, 4),
        )
        step = facts.find_written(None, row.step)[-1]
        finding = Finding(
            step, "clips_scaled", sentence, "warning", advice=_("Call scaler.unscale_(optimizer) before it.")
        )
        yield put_line(finding, read_place(row.called_at), "clips")


def _find_scale_at(facts: TrainingFacts, row: ClipRow) -> float | None:
    """Return the scale that gradients had at a call that clips; None if they had none, or the limit has it, too."""
    written = _find_round(facts, row)
    scale = facts.find_scale(written[-1]) if written else None
    if scale is None or row.limit >= scale * _LEAST_SHARE or _was_divided(facts, row, written, scale):
        return None
    unscaled = facts.trace.lookup.steps_of_kinds("unscale")
    return scale if bisect_left(unscaled, written[-1]) == bisect_left(unscaled, row.step) else None


def _was_divided(facts: TrainingFacts, row: ClipRow, written: list[int], scale: float) -> bool:
    """Whether the norm that a call found shows that the program itself had divided the gradients by the scale."""
    norms = facts.list_last_norms(written)
    return row.norm is not None and None not in norms and row.norm < hypot(*filter(None, norms)) / sqrt(scale)


def find_scaled_steps(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that took steps with gradients that carry the scale of a GradScaler."""
    for optimizer, updates in facts.updates.items():
        scaled = [(row, scale) for row in updates if (scale := _find_scale_of(facts, optimizer, row)) is not None]
        if not scaled:
            continue
        sentence = _(
            "{optimizer} took {count} of {total} steps with gradients that were still scaled: they were {scale} times "
            "as large as those of the loss."
        ).format(
            optimizer=facts.describe_optimizers([optimizer]),
            count=f"{len(scaled):,}",
            total=f"{len(updates):,}",
            scale=format_number(scaled[0][1], 6),
        )
        advice = _("Call scaler.step(optimizer) instead of optimizer.step().")
        yield add_update_line(
            Finding(scaled[0][0].step, "scaled_step", sentence, "warning", advice=advice), scaled[0][0]
        )


def _find_scale_of(facts: TrainingFacts, optimizer: int, row: UpdateRow) -> float | None:
    """Return the scale that the gradients of a step had; None if they had none, or may have been divided by it."""
    if row.unscales or row.regraded or facts.lacks_passes:
        return None
    held = (number for number, one in enumerate(facts.parameters) if optimizer in one.optimizers)
    last = max(
        (each.step for number in held for each in facts.accumulations_between(number, 0, row.step)), default=None
    )
    scale = None if last is None else facts.find_scale(last)
    if last is None or scale is None:
        return None
    unscaled = facts.trace.lookup.steps_of_kinds("unscale")
    mine = (step for step in unscaled if facts.trace.rows[step].optimizer == optimizer)
    return None if any(last < step < row.step for step in mine) else scale


def find_idle_optimizers(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that took no step, although gradients of their parameters were written and cleared again.

    A program may leave out the step of a pass with NaN or Inf: with such gradients nothing is found.
    """
    is_open = facts.lacks_passes or facts.is_cut_short or bool(facts.trace.lookup.steps_of_kinds("unscale"))
    made = {} if is_open else {row.optimizer: row for row in reversed(facts.trace.groups)}
    for optimizer, row in made.items():
        held = [number for number, one in enumerate(facts.parameters) if optimizer in one.optimizers]
        if optimizer in facts.updates or any(facts.has_stepped(facts.parameters[number]) for number in held):
            continue
        cleared = [number for number in held if facts.was_cleared(number)]
        if not cleared or not all(facts.is_finite(number) for number in held):
            continue
        passes = {each.pass_id for number in cleared for each in facts.accumulations(number)}
        text = _(
            "{optimizer} took no step, although {count} passes wrote gradients of {on}, which were cleared in between."
        )
        names = {"optimizer": facts.describe_optimizers([optimizer]), "on": facts.describe(cleared)}
        last = facts.accumulations(cleared[0])[-1]
        finding = Finding(last.step, "never_stepped", text.format(count=f"{len(passes):,}", **names), "warning")
        finding = replace(finding, advice=_("Call its step() after backward()."))
        yield put_line(finding, find_pass_line(facts.trace, last.pass_id) or read_place(row.made_at), "pass")


def find_early_steps(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers whose steps come before the pass of their round, and use the gradients of the round before."""
    if not facts.steps_come_first or facts.lacks_passes or facts.is_cut_short or facts.trace.dropped:
        return
    for optimizer, updates in facts.updates.items():
        held = [number for number, row in enumerate(facts.parameters) if optimizer in row.optimizers]
        is_empty = set(held) == set(updates[0].without_grad) and not facts.find_written(None, updates[0].step)
        if len(updates) < 2 or not is_empty or all(facts.never_had_grad(number) for number in held):
            continue
        sentence = _(
            "{optimizer} took its first step before any pass, without gradients. Each later step used the gradients of "
            "the round before, and no step used those of the last pass."
        ).format(optimizer=facts.describe_optimizers([optimizer]))
        advice = _("Call step() after backward().")
        yield add_update_line(Finding(updates[0].step, "step_first", sentence, "warning", advice=advice), updates[0])
