"""Find optimizers that use gradients of a pass that was meant for another optimizer."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.training.program_calls import put_line
from hookviz.analysis.findings.training.training_facts import Accumulation, TrainingFacts
from hookviz.support.messages import _


class _Foreign(NamedTuple):
    """A gradient that another optimizer's pass wrote, and to which the pass of the optimizer added its own."""

    first: Accumulation
    second: Accumulation
    other: int
    """The optimizer that took a step between both."""
    parameter: int


def find_foreign_passes(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that take a step with the gradients of two passes, of which another optimizer used the first.

    Both lines start passes of their own: in a GAN, the pass of the discriminator also reaches the generator.
    """
    for optimizer, updates in facts.updates.items() if len(facts.updates) > 1 and not facts.lacks_passes else ():
        held = facts.list_held(optimizer)
        starts = [-1, *(row.step for row in updates)]
        pairs = list(pairwise(starts))
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
    return _Foreign(first, second, others[0], parameter)


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
        "Call {optimizer}.zero_grad() between the two passes, or detach what the first loss uses, so that its pass "
        "does not reach these parameters."
    )
    passes = tuple(sorted({one.second.pass_id for one in found}))
    finding = Finding(
        first.second.step,
        "not_zeroed",
        sentence.format(**names),
        "warning",
        passes,
        describe_passes(passes, facts.trace),
        advice=advice.format(**names),
    )
    return put_line(replace(finding, certainty="likely"), lines[0], "pass")
