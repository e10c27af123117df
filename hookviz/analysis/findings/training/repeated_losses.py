"""Find losses that several passes go through: their gradients count again in a step."""

from collections.abc import Iterator
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.training.program_calls import put_line
from hookviz.analysis.findings.training.training_facts import Accumulation, TrainingFacts
from hookviz.support.messages import _


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
                if not steps or steps[-1] < again.second.step:
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
        "Two passes go through the same loss before one step of {optimizer}, and nothing clears the gradients in "
        "between: those of {on} count twice."
    )
    advice = _("Call backward() once for each loss.")
    line = facts.pass_lines.get(found[0].first.pass_id)
    return put_line(_make_repeated(facts, optimizer, found, sentence, advice), line, "pass")


def _describe_outdated(facts: TrainingFacts, optimizer: int, found: list[_Again]) -> Finding:
    sentence = _(
        "Passes go through the loss of earlier passes again, after {optimizer} has taken a step for it: the gradients "
        "of {on} count again, and belong to a forward from before that step."
    )
    advice = _("Call backward() on the new loss only. To add up losses for a report, use loss.item().")
    line = facts.pass_lines.get(found[0].second.pass_id)
    return put_line(_make_repeated(facts, optimizer, found, sentence, advice), line, "pass")


def _make_repeated(facts: TrainingFacts, optimizer: int, found: list[_Again], sentence: str, advice: str) -> Finding:
    passes = tuple(sorted({again.second.pass_id for again in found}))
    on = facts.describe(list(dict.fromkeys(again.parameter for again in found)))
    text = sentence.format(optimizer=facts.describe_optimizers([optimizer]), on=on)
    when = describe_passes(passes, facts.trace)
    return Finding(found[0].second.step, "repeated_loss", text, "warning", passes, when, advice=advice)
