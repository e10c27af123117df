"""Find optimizers whose learning rate is 0, or has become so small that nothing moves, and the line that set it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.training.program_calls import (
    RateSetter,
    add_update_line,
    find_optimizer_call,
    find_rate_setter,
)
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import GroupRow, UpdateRow
from hookviz.trace.values import format_number

FEWEST, SHARE = 3, 0.1
"""How many of the last steps of an optimizer have to move nothing, and which part of all: a schedule may end near 0."""
FALL = 1e-3
"""To which part of the first one a learning rate has to have fallen that is taken for the reason."""


def find_faded_rates(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers whose last steps move nothing, although there are gradients: the learning rate has fallen."""
    for optimizer, updates in facts.updates.items():
        rounds = reversed(facts.list_rounds(optimizer))
        last = [row for _start, row in takewhile(lambda each: _moves_nothing(facts, *each), rounds)]
        is_long = max(FEWEST, SHARE * len(updates)) <= len(last) < len(updates)
        if not is_long or facts.trace.optimizers[optimizer].is_own:
            continue
        first_rate, rate = updates[0].rates[0], last[-1].rates[0]
        if first_rate is None or rate is None or rate > FALL * first_rate:
            continue
        text = _(
            "The last {count} of {total} steps of {optimizer} moved nothing: its learning rate fell from {first} to "
            "{rate}."
        )
        sentence = text.format(
            count=f"{len(last):,}",
            total=f"{len(updates):,}",
            optimizer=facts.describe_optimizers([optimizer]),
            first=format_number(first_rate, 4),
            rate=format_number(rate, 4),
        )
        advice = _("Look whether its scheduler is called once an epoch, or once a batch, as it was meant to be.")
        finding = Finding(last[-1].step, "unmoved", sentence, "warning", certainty="likely", advice=advice)
        setter = find_rate_setter(facts.trace, optimizer)
        if setter is None:
            yield add_update_line(finding, last[-1])
        else:
            yield put_line(replace(finding, cause=_describe_setter(setter)), setter.place, "rate")


def _moves_nothing(facts: TrainingFacts, start: int, row: UpdateRow) -> bool:
    """Whether a step leaves all that was measured as it was, although a pass wrote it a gradient, at rates above 0."""
    still = {number for number, norm, _group in row.moves if norm == 0}.difference(row.without_grad)
    is_given = any(facts.has_left_gradient(number, start, row.step) for number in still)
    return is_given and all(norm == 0 for _number, norm, _group in row.moves) and all(row.rates)


def find_zero_rates(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers whose learning rate is 0, in all steps or in some, such as the first one of a warm-up."""
    for optimizer, updates in facts.updates.items():
        zero = [row for row in updates if row.rates and all(rate == 0 for rate in row.rates)]
        if not zero:
            yield from _find_zero_groups(facts, optimizer, updates)
            continue
        moves = [norm for row in zero for _number, norm, _group in row.moves]
        if any(moves):  # an optimizer with step sizes of its own
            continue
        is_always = len(zero) == len(updates)
        text = _("The learning rate of {optimizer} was 0 in {count} of {total} steps.")
        name = facts.describe_optimizers([optimizer])
        sentence = text.format(optimizer=name, count=len(zero), total=len(updates))
        finding = Finding(zero[0].step, "lr_zero", sentence, "warning" if is_always else "remark")
        yield _add_cause(facts, finding, optimizer, range(len(zero[0].rates)))


def _find_zero_groups(facts: TrainingFacts, optimizer: int, updates: list[UpdateRow]) -> Iterator[Finding]:
    """Find groups of parameters whose learning rate is always 0, beside groups that learn."""
    groups = min((len(row.rates) for row in updates), default=0)
    zero = [group for group in range(groups) if all(row.rates[group] == 0 for row in updates)]
    moves = [norm for row in updates for _number, norm, group in row.moves if group in zero]
    if zero and not any(moves):
        text = _("The learning rate of group {groups} of {optimizer}, counted from 0, was 0 in each of {total} steps.")
        names = {"groups": join_list(list(map(str, zero))), "optimizer": facts.describe_optimizers([optimizer])}
        sentence = text.format(total=len(updates), **names)
        yield _add_cause(facts, Finding(updates[0].step, "lr_zero", sentence, "remark"), optimizer, zero)


def _add_cause(facts: TrainingFacts, finding: Finding, optimizer: int, numbers: Sequence[int]) -> Finding:
    """Add why the learning rates of some groups are 0: the optimizer was made so, or something set them later."""
    rows = [row for row in facts.trace.groups if row.optimizer == optimizer and row.number in numbers]
    if len(rows) < len(numbers):
        return _add_read_cause(facts, finding, optimizer)
    place = read_place(rows[0].made_at)
    if all(row.rate == 0 for row in rows):
        return put_line(replace(finding, cause=_("It was 0 when the optimizer was made.")), place, "makes")
    return _add_setter(facts, finding, optimizer, next(row for row in rows if row.rate != 0), place)


def _add_setter(
    facts: TrainingFacts, finding: Finding, optimizer: int, row: GroupRow, made: CodePlace | None
) -> Finding:
    """Add that something set a rate to 0 which was another one when the optimizer was made."""
    if row.rate is None:
        return finding
    setter = find_rate_setter(facts.trace, optimizer)
    before = _("It was {rate} when the optimizer was made.").format(rate=format_number(row.rate, 4))
    if setter is None:
        cause = join_sentences([before, _("Something set it to 0 afterwards.")])
        return put_line(replace(finding, cause=cause), made, "makes")
    cause = join_sentences([before, _describe_setter(setter)])
    return put_line(replace(finding, cause=cause, certainty="likely"), setter.place, "rate")


def _describe_setter(setter: RateSetter) -> str:
    text = _("In the code that was recorded, only {where} sets it.")
    if setter.is_scheduler:
        text = _("A scheduler sets it, which is made at {where}.")
    return text.format(where=setter.place.where)


def _add_read_cause(facts: TrainingFacts, finding: Finding, optimizer: int) -> Finding:
    """Add the line that the text of the program shows, of an optimizer that is older than the recording."""
    setter = find_rate_setter(facts.trace, optimizer)
    if setter is not None:
        finding = replace(finding, cause=_describe_setter(setter), certainty="likely")
        return put_line(finding, setter.place, "rate")
    made = find_optimizer_call(facts.trace, facts.trace.optimizers[optimizer].kind)
    return finding if made is None else put_line(replace(finding, certainty="likely"), made, "makes")
