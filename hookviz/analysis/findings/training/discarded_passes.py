"""Find optimizers that use the last of several passes only, because each pass found the gradients cleared."""

from collections.abc import Iterator

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.training.program_calls import add_update_line, find_clearing_around, put_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _

_FEWEST = 2
"""So many rounds show that the steps come regularly: a program may leave out the step of a bad batch."""


def find_discarded(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that take a step for several passes of one line, and use the gradients of the last one only.

    A pass may be meant for something else: for the gradient of an input, for the loss of another net, or for the point
    that a closure tries. Then another line starts it, it reaches other leaves, or the parameters have moved since.
    """
    for optimizer, updates in facts.updates.items() if not facts.lacks_passes else ():
        held = facts.list_held(optimizer)
        starts = [-1, *(row.step for row in updates)]
        rounds = [_list_round(facts, held, *pair) for pair in zip(starts, (row.step for row in updates), strict=False)]
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
        finding = Finding(
            first, "discarded", sentence, "warning", lost, describe_passes(lost, facts.trace), advice=advice
        )
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
    leaves = [facts.leaf_values(pass_id) for pass_id in passes]
    known = [node for node, value in leaves[0].items() if value is not None]
    texts = {node: repr(leaves[0][node]) for node in known}  # NaN has the text of another NaN, and is not equal to it
    is_same = all(
        set(one) == set(leaves[0]) and all(repr(one[node]) == texts[node] for node in known) for one in leaves
    )
    return len(lines) == 1 and None not in lines and is_same and bool(known)
