"""Find passes whose gradients count more than once, are cleared before a step, or reach a step of another optimizer."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.training.gradient_facts import is_on_device, is_used
from hookviz.analysis.findings.training.program_calls import add_update_line, find_clearing_around
from hookviz.analysis.findings.training.training_facts import Accumulation, TrainingFacts
from hookviz.support.messages import _

_FEWEST = 2
"""So many rounds show that the steps come regularly: a program may leave out the step of a bad batch."""


class _Again(NamedTuple):
    """A parameter that got the gradient of one loss from two passes."""

    parameter: int
    first: Accumulation
    second: Accumulation


def find_repeated_losses(facts: TrainingFacts) -> Iterator[Finding]:
    """Find passes that begin at the loss of an earlier one, or reach it, with the same gradient there.

    Both gradients count in one step if nothing cleared them in between, or in two steps, although the parameters have
    moved since the forward.
    """
    if not facts.updates or facts.lacks_passes:
        return
    doubled: dict[int, list[_Again]] = {}
    outdated: dict[int, list[_Again]] = {}
    for first, second in _list_repeated(facts):
        for again in _list_again(facts, first, second):
            for optimizer in facts.parameters[again.parameter].optimizers:
                steps = [row.step for row in facts.updates.get(optimizer, ())]
                if not is_used(facts, again.parameter, optimizer, again.second.step):
                    continue
                if any(again.first.step < step < again.second.step for step in steps):
                    outdated.setdefault(optimizer, []).append(again)
                elif again.second.before:
                    doubled.setdefault(optimizer, []).append(again)
    for optimizer, found in doubled.items():
        yield _describe_doubled(facts, optimizer, found)
    for optimizer, found in outdated.items():
        yield _describe_outdated(facts, optimizer, found)


def _list_repeated(facts: TrainingFacts) -> Iterator[tuple[int, int]]:
    """Yield two passes of which the later one goes through the loss of the earlier one, with the same gradient."""
    trace = facts.trace
    begun = {roots[0][0]: pass_id for pass_id, roots in reversed([*enumerate(trace.roots)]) if len(roots) == 1}
    computed = trace.lookup.compute_steps
    for (pass_id, node), step in computed.items():
        first = begun.get(node, pass_id)
        if first >= pass_id or (first, node) not in computed:
            continue
        values = [trace.rows[one].before for one in (computed[first, node], step)]
        given = [trace.values[value] for value in values if isinstance(value, int)]
        if len(given) == len(values) and given[0] == given[1] and given[0][0] == () and given[0][-1] is None:
            yield first, pass_id


def _list_again(facts: TrainingFacts, first: int, second: int) -> Iterator[_Again]:
    """Yield the parameters of optimizers that two passes gave a gradient."""
    for number, row in enumerate(facts.parameters):
        found = {each.pass_id: each for each in facts.accumulations(number)} if row.optimizers else {}
        if first in found and second in found:
            yield _Again(number, found[first], found[second])


def _describe_doubled(facts: TrainingFacts, optimizer: int, found: list[_Again]) -> Finding:
    sentence = _(
        "Passes go through the same loss again before a step of {optimizer}, and nothing clears the gradients in "
        "between: those of {on} count more than once."
    )
    finding = _make_repeated(facts, optimizer, found, sentence, _("Call backward() once for each loss."))
    return put_line(finding, facts.pass_lines.get(found[0].first.pass_id), "pass")


def _describe_outdated(facts: TrainingFacts, optimizer: int, found: list[_Again]) -> Finding:
    sentence = _(
        "Passes go through the loss of earlier passes again, after {optimizer} has taken a step for it: the gradients "
        "of {on} count again, and belong to a forward from before that step."
    )
    advice = _("Call backward() on the new loss only. To add up losses for a report, use loss.item().")
    finding = _make_repeated(facts, optimizer, found, sentence, advice)
    return put_line(finding, facts.pass_lines.get(found[0].second.pass_id), "pass")


def _make_repeated(facts: TrainingFacts, optimizer: int, found: list[_Again], sentence: str, advice: str) -> Finding:
    passes = tuple(sorted({again.second.pass_id for again in found}))
    on = facts.describe(list(dict.fromkeys(again.parameter for again in found)))
    text = sentence.format(optimizer=facts.describe_optimizers([optimizer]), on=on)
    return Finding(found[0].second.step, "repeated_loss", text, "warning", passes, advice=advice)


# -- gradients that are cleared before a step


def find_discarded(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that take a step for several passes of one line, and use the gradients of the last one only.

    A pass may be meant for something else: for the gradient of an input, for the loss of another net, or for the point
    that a closure tries. Then another line starts it, it reaches other leaves, or the parameters have moved since.
    """
    for optimizer, updates in facts.updates.items() if not facts.lacks_passes else ():
        held = facts.list_held(optimizer)
        rounds = [_list_round(facts, held, start, row.step) for start, row in facts.list_rounds(optimizer)]
        counts = {len(passes) for passes in rounds}
        if len(updates) < _FEWEST or len(counts) > 1 or counts <= {0, 1} or any(row.regraded for row in updates):
            continue
        if not all(_is_repeated(facts, passes) for passes in rounds):
            continue
        sentence = _(
            "Each step of {optimizer} came after {count} passes and used the gradients of the last one only: the "
            "gradients of {on} from the others were cleared before."
        ).format(
            optimizer=facts.describe_optimizers([optimizer]),
            count=f"{counts.pop():,}",
            on=facts.describe([number for number in held if facts.accumulations(number)]),
        )
        lost = tuple(pass_id for passes in rounds for pass_id in passes[:-1])
        advice = _("To add up the gradients of several passes, call zero_grad() once for each step, right after it.")
        first = facts.trace.lookup.steps(rounds[0][1])[0]
        finding = Finding(first, "discarded", sentence, "warning", lost, advice=advice)
        is_noticed = not any(is_on_device(facts, each.step) for number in held for each in facts.accumulations(number))
        finding = replace(finding, certainty="proven" if is_noticed else "likely")
        clearing = find_clearing_around(facts.trace, facts.pass_lines.get(rounds[0][0]))
        yield put_line(add_update_line(finding, updates[0]), clearing, "clears")


def _list_round(facts: TrainingFacts, held: list[int], start: int, end: int) -> list[int]:
    """List the passes between two steps if each found the gradients of the earlier ones cleared; else none."""
    found = [facts.accumulations_between(number, start, end) for number in held]
    found = [rows for rows in found if all(each.after for each in rows)]
    is_cleared = all(each.before == 0 for rows in found for each in rows[1:])
    return sorted({each.pass_id for rows in found for each in rows}) if is_cleared else []


def _is_repeated(facts: TrainingFacts, passes: list[int]) -> bool:
    """Whether one line started all these passes, which reached the same leaves, and nothing has moved these since."""
    lines = {facts.pass_lines.get(pass_id) for pass_id in passes}
    leaves = [facts.leaf_values.get(pass_id, {}) for pass_id in passes]
    known = [node for node, value in leaves[0].items() if value is not None]
    texts = {node: repr(leaves[0][node]) for node in known}  # NaN has the text of another NaN, and is not equal to it
    is_same = all(
        set(one) == set(leaves[0]) and all(repr(one[node]) == texts[node] for node in known) for one in leaves
    )
    return len(lines) == 1 and None not in lines and is_same and bool(known)


# -- gradients that reach a step of another optimizer


class _Foreign(NamedTuple):
    """A gradient that another optimizer's pass wrote, and to which the pass of the optimizer added its own."""

    first: Accumulation
    second: Accumulation
    other: int
    """The optimizer that took a step between both."""
    parameter: int
    is_last: bool
    """Whether no other optimizer took a step after the second: a part that several losses train may have its own."""


def find_foreign_passes(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that take a step with the gradients of two passes, of which another optimizer used the first.

    Both lines start passes of their own: in a GAN, the pass of the discriminator also reaches the generator.
    """
    for optimizer in facts.updates if len(facts.updates) > 1 and not facts.lacks_passes else ():
        held = facts.list_held(optimizer)
        pairs = [(start, row.step) for start, row in facts.list_rounds(optimizer)]
        found = [one for pair in pairs for number in held if (one := _find_foreign(facts, optimizer, number, *pair))]
        if found and {one.second.pass_id for one in found} >= _list_shared(facts, held, pairs):
            yield _describe_foreign(facts, optimizer, found)


def _list_shared(facts: TrainingFacts, held: list[int], pairs: list[tuple[int, int]]) -> set[int]:
    """Return the last pass before each step that used gradients of several."""
    rounds = (facts.accumulations_between(number, *pair) for number in held for pair in pairs)
    return {rows[-1].pass_id for rows in rounds if len(rows) > 1 and rows[-1].before}


def _find_foreign(facts: TrainingFacts, optimizer: int, parameter: int, start: int, end: int) -> _Foreign | None:
    """Return the gradients of two passes that one step of an optimizer used, if the first one was another's."""
    rows = facts.accumulations_between(parameter, start, end)
    if len(rows) < 2 or not rows[-1].before:
        return None
    first, second = rows[-2], rows[-1]
    others = [
        other
        for other, updates in facts.updates.items()
        if other != optimizer
        and other not in facts.parameters[parameter].optimizers
        and any(first.step < row.step < second.step for row in updates)
        and not any(second.step < row.step < end for row in updates)
    ]
    lines = [facts.pass_lines.get(one.pass_id) for one in (first, second)]
    if len(others) != 1 or None in lines or lines[0] == lines[1]:
        return None
    later = (row.step for other, updates in facts.updates.items() if other != optimizer for row in updates)
    return _Foreign(first, second, others[0], parameter, not any(second.step < step < end for step in later))


def _describe_foreign(facts: TrainingFacts, optimizer: int, found: list[_Foreign]) -> Finding:
    first = found[0]
    lines = [facts.pass_lines[one.pass_id] for one in (first.first, first.second)]
    names = {
        "optimizer": facts.describe_optimizers([optimizer]),
        "other": facts.describe_optimizers([first.other]),
        "on": facts.describe(list(dict.fromkeys(one.parameter for one in found))),
        "one": lines[0].where,
        "two": lines[1].where,
    }
    sentence = _(
        "The step of {optimizer} uses the gradients of two passes: the one at {one}, after which {other} took its "
        "step, also wrote gradients of {on}, and the one at {two} added to them."
    )
    advice = _(
        "If they should not learn from the first pass, call {optimizer}.zero_grad() between the two, or detach what "
        "the first loss uses."
    )
    passes = tuple(sorted({one.second.pass_id for one in found}))
    finding = Finding(
        first.second.step,
        "not_zeroed",
        sentence.format(**names),
        "warning" if all(one.is_last for one in found) else "remark",
        passes,
        advice=advice.format(**names),
    )
    return put_line(replace(finding, certainty="likely"), lines[0], "pass")
