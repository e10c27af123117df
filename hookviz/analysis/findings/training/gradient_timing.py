"""Find steps at the wrong moment: before the pass, while gradients are scaled, or never."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.training.gradient_facts import is_on_device, reads_scale
from hookviz.analysis.findings.training.program_calls import add_update_line, calls_step
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _
from hookviz.trace import TraceData, UpdateRow
from hookviz.trace.values import format_number


def find_scaled_steps(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that took steps with gradients that carry the scale of a GradScaler."""
    for optimizer, updates in facts.updates.items():
        scaled = [(row, *found) for row in updates if (found := _find_scale_of(facts, optimizer, row)) is not None]
        if not scaled:
            continue
        row, scale, written = scaled[0]
        sentence = _(
            "{optimizer} took {count} of {total} steps with gradients that were still scaled: they were {scale} times "
            "as large as those of the loss."
        ).format(
            optimizer=facts.describe_optimizers([optimizer]),
            count=f"{len(scaled):,}",
            total=f"{len(updates):,}",
            scale=format_number(scale, 6),
        )
        advice = _("Call scaler.step(optimizer) instead of optimizer.step().")
        finding = Finding(row.step, "scaled_step", sentence, "warning", advice=advice)
        yield add_update_line(replace(finding, certainty="likely" if is_on_device(facts, written) else "proven"), row)


def _find_scale_of(facts: TrainingFacts, optimizer: int, row: UpdateRow) -> tuple[float, int] | None:
    """Return the scale that the gradients of a step had, and the step that wrote the last of them.

    None if they had none, or may have been divided by it.
    """
    if row.unscales or row.regraded or facts.lacks_passes:
        return None
    held = facts.list_held(optimizer)
    written = (each.step for number in held for each in facts.accumulations_between(number, 0, row.step)[-1:])
    last = max(written, default=None)
    scale = None if last is None else facts.find_scale(last)
    if last is None or scale is None:
        return None
    is_unscaled = any(last < step < row.step for step in facts.unscales.get(optimizer, ()))
    return None if is_unscaled else (scale, last)


def find_unscaled_losses(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers whose gradients a GradScaler divided by its scale, although no loss was multiplied by it."""
    is_told = any(".scale(" in source.text for source in facts.trace.sources) and not reads_scale(facts)
    for optimizer, steps in facts.unscales.items() if is_told and not facts.lacks_passes else ():
        passes = _find_unscaled_passes(facts, optimizer, steps)
        if passes:
            sentence = _(
                "The GradScaler divides the gradients of {optimizer} by its scale, {scale}, but no loss was multiplied "
                "by it: they are that much too small."
            ).format(
                optimizer=facts.describe_optimizers([optimizer]),
                scale=format_number(_read_scale(facts.trace, steps[0]), 6),
            )
            advice = _(
                "Call scaler.scale(loss).backward(): scale() returns the scaled loss, and leaves the loss as it is."
            )
            finding = Finding(steps[0], "unscaled_loss", sentence, "warning", passes, advice=advice, certainty="likely")
            yield put_line(finding, facts.pass_lines.get(passes[0]), "pass")


def _find_unscaled_passes(facts: TrainingFacts, optimizer: int, steps: Sequence[int]) -> tuple[int, ...]:
    """Return the passes that wrote the gradients which these steps divided; none if one may have been scaled.

    A pass that begins at a product, or with another gradient than 1, may have been scaled by hand. A scale of 1 changes
    nothing.
    """
    held = facts.list_held(optimizer)
    ranges = list(zip([0, *steps], steps, strict=False))
    written = [
        each for number in held for start, end in ranges for each in facts.accumulations_between(number, start, end)
    ]
    passes = {each.pass_id for each in written}
    begins = [row for row in facts.trace.rows if row.kind == "seed" and row.pass_id in passes]
    is_plain = all(
        facts.trace.values[row.after][3] == 1 and not facts.trace.ops[row.own_node].startswith(("Mul", "Div"))
        for row in begins
        if isinstance(row.after, int)
    )
    is_scaled = any(facts.trace.lookup.scales(pass_id) for pass_id in passes) or _read_scale(facts.trace, steps[0]) == 1
    return tuple(sorted(passes)) if is_plain and not is_scaled else ()


def _read_scale(trace: TraceData, step: int) -> float:
    before = trace.rows[step].before
    scale: float = trace.values[before][3] if isinstance(before, int) else 1.0
    return scale


class IdleOptimizer(NamedTuple):
    """An optimizer that took no step, although gradients of its parameters were written and cleared again."""

    optimizer: int
    cleared: list[int]
    """Its parameters whose gradients were written and cleared."""
    passes: set[int]
    """The passes that wrote these."""


def list_idle_optimizers(facts: TrainingFacts) -> Iterator[IdleOptimizer]:
    """List the optimizers that took no step, although gradients of their parameters were written and cleared again.

    A program may leave out the step of a pass with NaN or Inf: with such gradients nothing is found.
    """
    is_open = facts.lacks_passes or facts.is_cut_short or bool(facts.trace.lookup.steps_of_kinds("unscale"))
    made = [] if is_open else [row.optimizer for row in facts.trace.groups]
    for optimizer in dict.fromkeys(made):
        held = facts.list_held(optimizer)
        if optimizer in facts.updates or any(facts.has_stepped(facts.parameters[number]) for number in held):
            continue
        cleared = [number for number in held if facts.was_cleared(number)]
        if cleared and all(facts.is_finite(number) for number in held):
            passes = {each.pass_id for number in cleared for each in facts.accumulations(number)}
            yield IdleOptimizer(optimizer, cleared, passes)


def find_idle_optimizers(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that took no step, and whose parameters nothing else moved; another one may step instead.

    If a line that did not run calls the step, it may be left out on purpose, as in the first rounds.
    """
    for idle in list_idle_optimizers(facts):
        if any(map(facts.moves.was_moved, idle.cleared)):
            continue
        text = _(
            "{optimizer} took no step, although {count} passes wrote gradients of {on}, which were cleared in between."
        )
        names = {"optimizer": facts.describe_optimizers([idle.optimizer]), "on": facts.describe(idle.cleared)}
        last = facts.accumulations(idle.cleared[0])[-1]
        sentence = text.format(count=f"{len(idle.passes):,}", **names)
        finding = Finding(last.step, "never_stepped", sentence, "remark")
        if not calls_step(facts.trace, names["optimizer"]):
            advice = _("Call the step() of {optimizer} after backward().").format(optimizer=names["optimizer"])
            finding = replace(finding, severity="warning", advice=advice)
        yield _add_pass_line(facts, finding, idle, last.pass_id)


def _add_pass_line(facts: TrainingFacts, finding: Finding, idle: IdleOptimizer, pass_id: int) -> Finding:
    """Add the line of the step that another optimizer takes instead; else the one of the last pass."""
    other = _find_other_step(facts, idle) if finding.advice else None
    if other is not None:
        text = _("After these passes, {other} takes a step instead.")
        optimizer = facts.trace.rows[other.step].optimizer or 0
        cause = text.format(other=facts.describe_optimizers([optimizer]))
        return add_update_line(replace(finding, cause=cause), other)
    return put_line(finding, facts.pass_lines.get(pass_id) or facts.find_making(idle.optimizer), "pass")


def _find_other_step(facts: TrainingFacts, idle: IdleOptimizer) -> UpdateRow | None:
    """Return the first step that another optimizer took after a pass for an idle one, if it took one after each."""
    for updates in facts.updates.values():
        taken = {facts.trace.rows[row.step].pass_id: row for row in reversed(updates)}
        if idle.passes <= taken.keys():
            return taken[min(idle.passes)]
    return None


def find_early_steps(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers whose steps come before the pass of their round, and use the gradients of the round before."""
    if not facts.steps_come_first or facts.lacks_passes or facts.is_cut_short or facts.trace.dropped:
        return
    for optimizer, updates in facts.updates.items():
        held = facts.list_held(optimizer)
        is_empty = set(held) == set(updates[0].without_grad) and not facts.find_written(None, updates[0].step)
        never_used = all(facts.moves.never_had_grad(number) for number in held)
        if len(updates) < 2 or not is_empty or never_used or not _is_loop(facts, updates, held):
            continue
        sentence = _(
            "{optimizer} took its first step before any pass, without gradients. Each later step used the gradients of "
            "the round before, and no step used those of the last pass."
        ).format(optimizer=facts.describe_optimizers([optimizer]))
        advice = _("Call step() after backward().")
        yield add_update_line(Finding(updates[0].step, "step_first", sentence, "warning", advice=advice), updates[0])


def _is_loop(facts: TrainingFacts, updates: Sequence[UpdateRow], held: Sequence[int]) -> bool:
    """Whether one line took all steps, with as many passes after each: a first step elsewhere may quiet a scheduler."""
    ends = [*(row.step for row in updates[1:]), len(facts.trace.rows)]
    passes = [
        len({each.pass_id for number in held for each in facts.accumulations_between(number, row.step, end)})
        for row, end in zip(updates, ends, strict=True)
    ]
    is_used = not any(set(held) <= set(row.without_grad) for row in updates[1:])
    return len(updates) > 1 and len({row.taken_at for row in updates}) == 1 and len(set(passes)) == 1 and is_used
