"""Find optimizers whose learning rate is 0, and the line that made it 0."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.training.program_calls import (
    RateSetter,
    find_optimizer_call,
    find_rate_in_call,
    find_rate_setter,
    runs_first,
)
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import GroupRow, UpdateRow
from hookviz.trace.values import format_number


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
        line = None if place is None else find_rate_in_call(facts.trace, place, rows[0].number)
        text = _("It was 0 when the optimizer was made.")
        return put_line(replace(finding, cause=text), line, "makes")
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
    finding = replace(finding, certainty="likely")
    if not setter.is_scheduler:
        text = _("In the code that was recorded, only {where} sets it afterwards.").format(where=setter.place.where)
        return put_line(replace(finding, cause=join_sentences([before, text])), setter.place, "rate")
    first = facts.updates[optimizer][0]
    cause = join_sentences([before, *_describe_scheduler(facts, setter, first)])
    is_later = finding.step != first.step and setter.step is not None
    return put_line(replace(finding, cause=cause), setter.step if is_later else setter.place, "rate")


def _describe_scheduler(facts: TrainingFacts, setter: RateSetter, first: UpdateRow) -> Iterator[str]:
    """Say where a scheduler is made, and where it sets the rate; and if it does so before the step in each round."""
    if setter.step is None:
        yield _("A scheduler sets it, which is made at {where}.").format(where=setter.place.where)
        return
    text = _("A scheduler sets it: when it is made ({made}), and at each of its steps ({step}).")
    yield text.format(made=setter.place.where, step=setter.step.where)
    update = read_place(first.taken_at)
    if update is not None and runs_first(facts.trace, setter.step, update):
        text = _("There it runs before the step of the optimizer ({where}): no step uses the first rate.")
        yield text.format(where=update.where)


def _add_read_cause(facts: TrainingFacts, finding: Finding, optimizer: int) -> Finding:
    """Add the line that the text of the program shows, of an optimizer that is older than the recording."""
    setter = find_rate_setter(facts.trace, optimizer)
    if setter is not None:
        text = _("In the code that was recorded, only {where} sets it.").format(where=setter.place.where)
        if setter.is_scheduler:
            text = join_sentences(_describe_scheduler(facts, setter, facts.updates[optimizer][0]))
        return put_line(replace(finding, cause=text, certainty="likely"), setter.place, "rate")
    made = find_optimizer_call(facts.trace, facts.trace.optimizers[optimizer].kind)
    return finding if made is None else put_line(replace(finding, certainty="likely"), made, "makes")
