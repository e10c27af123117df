"""What became of gradients between the pass that wrote them and a step, as far as the rows of a trace prove it."""

from math import isclose

from hookviz.analysis.findings.training.training_facts import Accumulation, TrainingFacts
from hookviz.trace import UpdateRow
from hookviz.trace.changes import find_factor
from hookviz.trace.values import Value


def is_on_device(facts: TrainingFacts, written: int) -> bool:
    """Whether a gradient lay on a device when it was written: there, a write through ``.data`` is not noticed."""
    after = facts.trace.rows[written].after
    return isinstance(after, int) and facts.trace.values[after][2] != "cpu"


def reads_scale(facts: TrainingFacts) -> bool:
    """Whether the program asks a GradScaler for its scale: what it does with that, its text does not prove."""
    return any("get_scale" in source.text for source in facts.trace.sources)


def holds_all(facts: TrainingFacts, optimizer: int, row: UpdateRow) -> bool:
    """Whether an optimizer held all the parameters at a step that it held at any: it may get some later."""
    return row.held == len(facts.list_held(optimizer))


def is_added_to(facts: TrainingFacts, parameter: int, row: UpdateRow, following: Accumulation) -> bool:
    """Whether a pass added to the gradient that a parameter had at an earlier step, and nothing changed it between."""
    norm = _find_norm_at(facts, parameter, row)
    return bool(norm and following.before) and isclose(norm or 0, following.before or 0, rel_tol=1e-5)


def is_rewritten(facts: TrainingFacts, start: int) -> bool:
    """Whether no gradient from before a step is used later: passes write each one anew before the step that uses it."""
    for optimizer, updates in facts.updates.items():
        following = next((row for row in updates if row.step >= start), None)
        used = [] if following is None else set(facts.list_held(optimizer)).difference(following.without_grad)
        written = (facts.accumulations_between(number, start, following.step) for number in used if following)
        if not all(found and found[0].before == 0 for found in written):
            return False
    return True


def is_used(facts: TrainingFacts, parameter: int, optimizer: int, written: int) -> bool:
    """Whether the next step of an optimizer used what a pass had written: neither cleared nor recombined in between.

    Clipping multiplies a gradient, and leaves what it consists of.
    """
    following = next((row for row in facts.updates.get(optimizer, ()) if row.step > written), None)
    if following is None or parameter in following.without_grad:
        return False
    later = facts.accumulations_between(parameter, written + 1, following.step)
    return all(each.before for each in later) and _is_multiplied(facts, parameter, following)


def _is_multiplied(facts: TrainingFacts, parameter: int, row: UpdateRow) -> bool:
    """Whether a gradient was at a step as passes had left it, but for a factor."""
    left = facts.trace.lookup.find_gradient_before(facts.parameters[parameter].names, row.step)
    value = dict(row.regraded).get(parameter)
    if value is None or left is None:
        return True
    factor = find_factor(*(Value(*facts.trace.values[one]) for one in (left, value)))
    return bool(factor)


def _find_norm_at(facts: TrainingFacts, parameter: int, row: UpdateRow) -> float | None:
    """Return the norm that the gradient of a parameter had at a step; None if it is not known."""
    left = facts.trace.lookup.find_gradient_before(facts.parameters[parameter].names, row.step)
    return facts.find_norm(dict(row.regraded).get(parameter, left))
