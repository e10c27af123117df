"""Find steps at the wrong moment: before the pass, while gradients are scaled, or never."""

from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.training.program_calls import add_update_line, find_pass_line, put_line, read_place
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _
from hookviz.trace import UpdateRow
from hookviz.trace.values import format_number


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
