"""Find mistakes of a training loop: parameters that are not trained, gradients that add up, steps that do nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.training.gradient_clipping import (
    find_scaled_clips,
    find_scaled_hooks,
    find_useless_clips,
)
from hookviz.analysis.findings.training.gradient_facts import holds_all, is_added_to
from hookviz.analysis.findings.training.gradient_timing import (
    find_early_steps,
    find_idle_optimizers,
    find_scaled_steps,
    find_unscaled_losses,
    list_idle_optimizers,
)
from hookviz.analysis.findings.training.learning_rates import find_faded_rates, find_zero_rates
from hookviz.analysis.findings.training.misused_passes import find_discarded, find_foreign_passes, find_repeated_losses
from hookviz.analysis.findings.training.modes import (
    find_eval_dropouts,
    find_eval_norms,
    find_frozen_norms,
    find_functional_dropouts,
)
from hookviz.analysis.findings.training.moved_parameters import find_moved, find_moved_by_hand, find_unmoved
from hookviz.analysis.findings.training.optimizer_contents import (
    find_missing,
    find_plain_tensors,
    find_replaced,
    find_uncalled,
)
from hookviz.analysis.findings.training.parameter_findings import (
    find_frozen,
    find_marked,
    find_shared,
    find_stopped,
    find_unreached,
)
from hookviz.analysis.findings.training.program_calls import add_update_line, find_optimizer_call
from hookviz.analysis.findings.training.rebound_names import find_dropped_edits, find_rebound
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _
from hookviz.trace import TraceData


def list_hygiene(trace: TraceData) -> list[Finding]:
    """List the mistakes of the training that a trace shows, over all its passes and optimizer steps.

    They are found from the steps of optimizers, of a GradScaler, and from the gradients that reach parameters; a trace
    without any optimizer step has at most a dropout that drops in an evaluation, or an update by hand without effect.
    """
    facts = TrainingFacts(trace)
    return [finding for rule in _RULES for finding in rule(facts)]


def _find_not_zeroed(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that use the gradients of earlier steps again, because nothing set them to zero.

    Several passes between two steps are gradient accumulation: then the first of them finds no ``.grad``, or zeros.
    A step that was meant for another optimizer, which takes none, has no other fault: that one is told instead.
    Nothing is found if passes ran unrecorded, in which ``.grad`` may have been set to zero and written again.
    """
    if not facts.updates or facts.lacks_passes:
        return
    for optimizer, updates in facts.updates.items():
        added, later = _list_added(facts, optimizer)
        if added and not any(later <= idle.passes for idle in list_idle_optimizers(facts)):
            sentence = _(
                "{optimizer} uses the gradients of earlier steps again: after its step, .grad of {on} was "
                "not set to zero, and the next pass added to it. Call zero_grad() once for each step."
            ).format(on=facts.describe([*added]), optimizer=facts.describe_optimizers([optimizer]))
            passes, first = tuple(sorted(later)), min(added.values())
            finding = Finding(first, "not_zeroed", sentence, "warning", passes)
            yield add_update_line(finding, next(row for row in updates if row.step > first))


def _list_added(facts: TrainingFacts, optimizer: int) -> tuple[dict[int, int], set[int]]:
    """List the parameters whose gradients were added to those that an earlier step of an optimizer had used.

    Returned are parameter → the first step that added one, and the passes that did.
    """
    added: dict[int, int] = {}
    later: set[int] = set()
    updates = [row for row in facts.updates[optimizer] if holds_all(facts, optimizer, row)]
    for number in facts.list_held(optimizer):
        for before, after in pairwise(updates) if facts.parameters[number].held else ():
            found = facts.accumulations_between(number, before.step, after.step)
            if found and all(each.before for each in found) and is_added_to(facts, number, before, found[0]):
                added.setdefault(number, found[0].step)
                later.update(each.pass_id for each in found)
    return added, later


def _find_zeroed_gradients(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that were given zeros only, although the passes before had computed other gradients."""
    for optimizer, updates in facts.updates.items():
        held = facts.list_held(optimizer)
        zero = [
            row
            for start, row in facts.list_rounds(optimizer)
            if row.zero and any(facts.has_left_gradient(number, start, row.step) for number in held)
        ]
        if zero:
            name, count = facts.describe_optimizers([optimizer]), {"count": len(zero), "total": len(updates)}
            severity = "warning" if len(zero) == len(updates) else "remark"
            sentence = _(
                "The gradients of {optimizer} were all 0 in {count} of {total} steps, although the passes "
                "computed other gradients: something set them to 0 before the step, such as clipping to a "
                "norm of 0."
            ).format(optimizer=name, **count)
            yield Finding(zero[0].step, "zeroed", sentence, severity)


def _find_second_updates(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that two optimizers change after the same pass."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for number, row in enumerate(facts.parameters):
        pair = _find_second_update(facts, number, row.optimizers)
        if pair is not None:
            optimizers, step = pair
            found.setdefault(optimizers, []).append((step, number))
    for optimizers, rows in found.items():
        first, second = (facts.describe_optimizers([optimizer]) for optimizer in optimizers)
        sentence = _("{first} and {second} both change {on} after the same pass, each with the whole gradient.")
        names = {"first": first, "second": second, "on": facts.describe([number for _step, number in rows])}
        advice = _("Give each parameter to one optimizer.")
        finding = Finding(min(rows)[0], "updated_twice", sentence.format(**names), "warning", advice=advice)
        makings = [place for one in optimizers if (place := facts.find_making(one)) is not None]
        yield put_line(finding, max(makings, key=lambda place: place.line, default=None), "makes")


def _find_second_update(
    facts: TrainingFacts, number: int, optimizers: Sequence[int]
) -> tuple[tuple[int, int], int] | None:
    """Return two optimizers of which one changed a parameter right after the other, and the step of the later one.

    A step that the other optimizer takes inside its own is none, nor one with another gradient than the step before.
    """
    updates = [(row.step, optimizer, row) for optimizer in optimizers for row in facts.updates.get(optimizer, ())]
    for (before, one, first), (after, other, second) in pairwise(sorted(updates)):
        has_grad = not any(number in row.without_grad or row.zero for row in (first, second))
        is_same = first.taken_by != other and all(number != each for each, _value in second.regraded)
        is_same_pass = facts.trace.rows[before].pass_id == facts.trace.rows[after].pass_id
        if one != other and has_grad and is_same and is_same_pass:
            return ((one, other) if one < other else (other, one)), after
    return None


def _find_skipped_steps(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers all of whose steps a GradScaler has skipped; a single skipped step is normal at the beginning."""
    for optimizer, steps in facts.unscales.items():
        is_skipped = all(facts.trace.rows[step].found_inf for step in steps)
        if len(steps) > 1 and is_skipped and optimizer not in facts.updates:
            name = facts.describe_optimizers([optimizer])
            sentence = _(
                "All {count} steps of {optimizer} were skipped under a GradScaler, because its gradients held Inf or "
                "NaN each time: no parameter has changed."
            ).format(optimizer=name, count=len(steps))
            yield _explain_skipping(facts, Finding(steps[0], "skipped", sentence, "warning"), steps)


def _explain_skipping(facts: TrainingFacts, finding: Finding, steps: Sequence[int]) -> Finding:
    """Say why steps were skipped: update() makes the scale smaller after each, unless the scaler is another one."""
    rows = [row for step in steps for row in facts.trace.lookup.scales(facts.trace.rows[step].pass_id)]
    scales = {row.scale for row in rows}
    if len(rows) < len(steps) or len(scales) > 1:
        cause = _("The scale is too large, or the gradients are not finite at any scale.")
        return replace(finding, cause=cause)
    text = _("The scale was {scale} each time, although update() makes it smaller after a skipped step.")
    advice = _("Make one GradScaler before the loop, and call its update() after each step.")
    finding = replace(finding, cause=text.format(scale=f"{scales.pop():,g}"), advice=advice)
    return put_line(finding, find_optimizer_call(facts.trace, "GradScaler"))


_RULES: tuple[Callable[[TrainingFacts], Iterator[Finding]], ...] = (
    find_replaced,
    find_missing,
    find_plain_tensors,
    find_unreached,
    find_uncalled,
    find_stopped,
    find_frozen,
    find_marked,
    find_shared,
    _find_not_zeroed,
    find_foreign_passes,
    find_repeated_losses,
    find_discarded,
    find_zero_rates,
    _find_zeroed_gradients,
    _find_second_updates,
    _find_skipped_steps,
    find_useless_clips,
    find_scaled_clips,
    find_scaled_hooks,
    find_scaled_steps,
    find_unscaled_losses,
    find_early_steps,
    find_idle_optimizers,
    find_moved,
    find_moved_by_hand,
    find_unmoved,
    find_faded_rates,
    find_rebound,
    find_dropped_edits,
    find_eval_norms,
    find_frozen_norms,
    find_eval_dropouts,
    find_functional_dropouts,
)
