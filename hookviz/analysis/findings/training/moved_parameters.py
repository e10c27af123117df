"""Find parameters that an optimizer moves although their gradient is 0 or they are frozen, and those it never moves."""

from collections.abc import Iterator, Sequence

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.training.program_calls import add_update_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import Hook, MovedRow
from hookviz.trace.changes import format_ranges
from hookviz.trace.values import format_number, get_norm_nan_inf

_AXES = {
    "rows": N_("rows {parts} (of {count}, counted from 0) of {on}"),
    "columns": N_("columns {parts} (of {count}, counted from 0) of {on}"),
    "numbers": N_("numbers {parts} (of {count}, counted from 0) of {on}"),
}
"""What moved → its name, for a part of a parameter."""

_HALF = ("bfloat16", "float16")
"""The types with few digits: in others a gradient that moves nothing is most often the noise of rounding."""

Moved = dict[int, list[MovedRow]]
"""Parameter → its rows."""


def find_moved(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an optimizer moves where their gradient is 0 because of a hook, or although frozen.

    It is a remark if the hook set other parts to 0 each time: then it thins gradients out rather than freezes weights.
    """
    groups: dict[object, Moved] = {}
    for row in facts.trace.moved:
        if row.hook is None and not facts.accumulations_between(row.parameter, 0, row.step):
            continue  # no pass wrote its gradient: the program did, for this step
        hook = None if row.hook is None else facts.trace.hook(row.hook)
        optimizer = facts.trace.rows[row.step].optimizer
        key = optimizer, None if hook is None else (hook.label, hook.file, hook.line)
        groups.setdefault(key, {}).setdefault(row.parameter, []).append(row)
    for moved in groups.values():
        yield _make_finding(facts, moved)


def _make_finding(facts: TrainingFacts, moved: Moved) -> Finding:
    rows = sorted(row for found in moved.values() for row in found)
    first = rows[0]
    optimizer = facts.trace.rows[first.step].optimizer or 0
    hooks = tuple(dict.fromkeys(facts.trace.hook(row.hook) for row in rows if row.hook is not None))
    finding = Finding(
        first.step,
        "moved",
        _describe_moves(facts, moved, optimizer, hooks),
        "warning" if first.hook is None or _is_mask(moved) else "remark",
        hooks=hooks,
        parameters=facts.name_parameters(moved),
        cause=_describe_cause(rows, facts.trace.optimizers[optimizer].kind),
        advice=_advise(rows),
    )
    update = next(row for row in facts.trace.updates if row.step == first.step)
    return put_line(add_update_line(finding, update), facts.find_making(optimizer), "makes")


def find_moved_by_hand(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an optimizer moves although the program set their gradient to 0 after the pass."""
    known = {row.parameter for row in facts.trace.moved}
    for optimizer, updates in facts.updates.items():
        steps: dict[int, list[int]] = {}
        groups = set[int]()
        for start, row in facts.list_rounds(optimizer) if not all(row.zero for row in updates) else ():
            zero = {number for number, value in row.regraded if get_norm_nan_inf(facts.trace.values[value])[0] == 0}
            for number, norm, group in row.moves:
                # A gradient that was 0 anyway, as that of a factor of zeros, was not set to 0.
                if norm and number in zero - known and facts.has_left_gradient(number, start, row.step):
                    steps.setdefault(number, []).append(row.step)
                    groups.add(group)
        if steps:
            yield _make_moved_by_hand(facts, optimizer, steps, groups)


def _make_moved_by_hand(facts: TrainingFacts, optimizer: int, steps: dict[int, list[int]], groups: set[int]) -> Finding:
    text = _("{optimizer} moves {on} in {count} of its {total} steps, although the gradient was set to 0 before.")
    names = {"optimizer": facts.describe_optimizers([optimizer]), "on": facts.describe(list(steps))}
    every, total = {step for found in steps.values() for step in found}, len(facts.updates[optimizer])
    rows = (row for row in facts.trace.groups if row.optimizer == optimizer and row.number in groups)
    decay = next((row.decay for row in rows if row.decay), None)
    finding = Finding(
        min(every),
        "moved",
        text.format(count=f"{len(every):,}", total=f"{total:,}", **names),
        "warning",
        parameters=facts.name_parameters(steps),
        cause=_describe_decay(facts.trace.optimizers[optimizer].kind, decay),
        advice=_("Freeze it with requires_grad_(False) before the forward instead, and set its .grad to None."),
    )
    return add_update_line(finding, next(row for row in facts.updates[optimizer] if row.step == min(every)))


def find_unmoved(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that no step of an optimizer changes, although it has a gradient and a learning rate.

    An optimizer of the program's own may keep what is rounded away, and add it later.
    """
    for optimizer, updates in facts.updates.items():
        if facts.trace.optimizers[optimizer].is_own:
            continue
        unmoved: dict[int, list[bool]] = {}
        for start, row in facts.list_rounds(optimizer):
            others = {*row.without_grad, *(number for number, _value in row.regraded)}
            for number, norm, group in row.moves:
                is_given = number not in others and facts.has_left_gradient(number, start, row.step)
                unmoved.setdefault(number, []).append(norm == 0 and is_given and bool(row.rates[group]))
        still = [number for number, flags in unmoved.items() if len(flags) == len(updates) > 1 and all(flags)]
        found = [number for number in still if _find_dtype(facts, number) in _HALF]
        if found:
            yield _make_unmoved(facts, optimizer, found)


def _make_unmoved(facts: TrainingFacts, optimizer: int, numbers: list[int]) -> Finding:
    text = _("None of the {total} steps of {optimizer} changes {on}, although they have a gradient other than 0.")
    names = {"optimizer": facts.describe_optimizers([optimizer]), "on": facts.describe(numbers)}
    updates = facts.updates[optimizer]
    cause = _("A number of the type {dtype} has so few digits that a change this small is rounded away.")
    finding = Finding(
        updates[0].step,
        "unmoved",
        text.format(total=f"{len(updates):,}", **names),
        "warning",
        certainty="likely",
        parameters=facts.name_parameters(numbers),
        cause=cause.format(dtype=_find_dtype(facts, numbers[0])),
        advice=_("Keep the parameters in float32, or take larger steps."),
    )
    return add_update_line(finding, updates[0])


def _find_dtype(facts: TrainingFacts, number: int) -> str:
    """Return the type of the numbers of a gradient, which is that of the parameter."""
    row = facts.trace.rows[facts.accumulations(number)[0].step]
    return facts.trace.values[row.after][1] if isinstance(row.after, int) else ""


def _is_mask(moved: Moved) -> bool:
    """Whether a hook set the same rows or columns to 0 each time, of several times."""
    return all(len(rows) > 1 and rows[0].axis != "numbers" and _list_common_parts(rows) for rows in moved.values())


def _list_common_parts(rows: Sequence[MovedRow]) -> list[int]:
    """List the rows, columns or numbers of a parameter that moved each time."""
    first = rows[0]
    common = set(first.parts).intersection(*(row.parts for row in rows))
    return sorted(common) if all(row.axis == first.axis for row in rows) else []


def _describe_moves(facts: TrainingFacts, moved: Moved, optimizer: int, hooks: Sequence[Hook]) -> str:
    names = {
        "optimizer": facts.describe_optimizers([optimizer]),
        "on": _describe_parts(facts, moved),
        "steps": _describe_steps(facts, moved, optimizer),
    }
    if not hooks:
        text = _("{optimizer} moves {on} {steps}, although requires_grad is False.")
        return text.format(**names)
    text = _("{optimizer} moves {on} {steps}, although {hook} sets the gradient there to 0.")
    return text.format(hook=hooks[0].label, **names)


def _describe_steps(facts: TrainingFacts, moved: Moved, optimizer: int) -> str:
    """Say in how many steps parameters move; not all are looked at, and not after the parameters are gone."""
    count, total = len({row.step for rows in moved.values() for row in rows}), len(facts.updates[optimizer])
    if count >= total > 1:
        return _("in each of its {total} steps").format(total=f"{total:,}")
    return _("in at least {count} of its {total} steps").format(count=f"{count:,}", total=f"{total:,}")


def _describe_parts(facts: TrainingFacts, moved: Moved) -> str:
    """Name what moves: whole parameters, or a part of one."""
    rows = next(iter(moved.values()))
    parts = _list_common_parts(rows) or rows[0].parts
    if rows[0].hook is None or len(parts) == rows[0].total or len(moved) > 1:
        return facts.describe(list(moved))
    text = _(_AXES[rows[0].axis])
    return text.format(parts=format_ranges(parts), count=f"{rows[0].total:,}", on=facts.describe(list(moved)))


def _describe_cause(rows: Sequence[MovedRow], kind: str) -> str:
    sentences = []
    if rows[0].hook is None:
        text = _("Its .grad from an earlier pass is still there, and a step uses each .grad that is not None.")
        sentences.append(text)
    decay = next((row.decay for row in rows if row.decay), None)
    sentences.append(_describe_decay(kind, decay))
    if rows[0].averages or (not decay and any(row.averages for row in rows)):
        text = _("{kind} goes on with the averages of earlier gradients that it keeps.")
        sentences.append(text.format(kind=kind))
    return join_sentences(sentences)


def _describe_decay(kind: str, decay: float | None) -> str:
    text = _("The weight decay of {kind}, {decay}, makes weights smaller whatever their gradient is.")
    return "" if decay is None else text.format(kind=kind, decay=format_number(decay, 4))


def _advise(rows: Sequence[MovedRow]) -> str:
    if rows[0].hook is None:
        return _("Set its .grad to None when you freeze it, or leave it out of the optimizer.")
    if all(len(row.parts) == row.total for row in rows):
        return _("Freeze it with requires_grad_(False) before the forward instead, and set its .grad to None.")
    if any(row.decay for row in rows) and not rows[0].averages:
        return _(
            "Put the parameter into a group with weight_decay=0, restore the numbers after step(), or use a mask in "
            "the forward instead of the hook."
        )
    return _("Restore the numbers after step(), or use a mask in the forward instead of the hook.")
