"""Find parameters that got gradients at first, and none from some step of their optimizer on."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from hookviz.analysis.findings.finding import Certainty, Finding
from hookviz.analysis.findings.parameters.missing_gradients import join_names, make_missing_gradient
from hookviz.analysis.findings.parameters.places import Place, PlaceFinder
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _

FEWEST = 2
"""How many of the last steps of an optimizer have to be without a gradient."""


def find_stopped(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an optimizer holds and that no gradient reached in its last steps, but in earlier ones.

    It may be meant, as if a part is frozen later, so that it is a remark.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for number, row in enumerate(facts.parameters):
        for optimizer in row.optimizers if row.held else ():
            first = _find_first_without(facts, number, optimizer)
            if first is not None:
                groups.setdefault((optimizer, first), []).append(number)
    finder = PlaceFinder(facts.trace) if groups else None
    for (optimizer, first), numbers in groups.items():
        assert finder is not None
        yield _make_stopped(facts, finder, optimizer, first, numbers)


def _find_first_without(facts: TrainingFacts, number: int, optimizer: int) -> int | None:
    """Return the first of the last steps of an optimizer that had no new gradient of a parameter.

    None if there are fewer of them than in a gap that came before: some parts are used now and then.
    """
    steps = [row.step for row in facts.updates.get(optimizer, ())]
    counts = [len(facts.accumulations_between(number, *pair)) for pair in pairwise([0, *steps])]
    with_gradient = [index for index, count in enumerate(counts) if count]
    if not with_gradient:
        return None
    gaps = [later - earlier for earlier, later in pairwise(with_gradient)]
    missed = len(counts) - 1 - with_gradient[-1]
    return steps[with_gradient[-1] + 1] if missed >= max(FEWEST, *gaps, 0) else None


def _make_stopped(facts: TrainingFacts, finder: PlaceFinder, optimizer: int, first: int, numbers: list[int]) -> Finding:
    names = tuple(facts.parameters[number].names[0] for number in numbers)
    steps = [row.step for row in facts.updates[optimizer]]
    sentence = _(
        "{optimizer} holds {on}, and no gradient reached them before its last {count} of {total} steps; one did before "
        "the earlier ones."
    ).format(
        optimizer=facts.describe_optimizers([optimizer]),
        on=join_names(names),
        count=f"{sum(step >= first for step in steps):,}",
        total=f"{len(steps):,}",
    )
    finding = Finding(first, "stopped", sentence, "remark", parameters=names)
    if not any(facts.parameters[number].requires_grad for number in numbers):
        advice = _("If they should be trained, unfreeze them before their module is called.")
        return replace(finding, cause=_("They do not require grad any more."), advice=advice)
    place = _find_place(facts, finder, names[0], first)
    return finding if place is None else _add_place(facts, finding, place)


def _find_place(facts: TrainingFacts, finder: PlaceFinder, name: str, first: int) -> Place | None:
    """Return where the graph is cut in the passes for which a parameter got no gradient."""
    owner = name.rpartition(".")[0]
    module = next((number for number, row in enumerate(facts.trace.modules) if row.name == owner), None)
    earlier = max((row.step for row in facts.trace.updates if row.step < first), default=0)
    return None if module is None else finder.find_since(earlier, owner, module)


def _add_place(facts: TrainingFacts, finding: Finding, place: Place) -> Finding:
    advice = make_missing_gradient(facts.trace, finding.parameters, place).advice
    certainty: Certainty = "proven" if place.is_proven else "likely"
    finding = replace(finding, cause=place.sentence, advice=advice, certainty=certainty)
    return replace(finding, line=place.line, file=place.file, line_role=place.line_role)
