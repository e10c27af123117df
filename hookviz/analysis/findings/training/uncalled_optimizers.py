"""Find optimizers that hold a model which was never called, while perhaps a copy of it got the gradients."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.training.outdated_optimizers import list_outdated
from hookviz.analysis.findings.training.program_calls import add_update_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _


def find_uncalled(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that took steps while none of their parameters had a gradient, or was in a called module.

    It is a warning if a model with parameters of the same shapes got gradients, as a copy does.
    """
    outdated = list_outdated(facts) if facts.updates else set()
    for optimizer, updates in facts.updates.items():
        numbers = facts.list_held(optimizer)
        if optimizer in outdated or len(updates) < 2 or not all(_is_idle(facts, number) for number in numbers):
            continue
        if not numbers or not facts.find_written(updates[0].step, updates[-1].step):
            continue
        sentence = _(
            "{optimizer} took {count} steps, and none of what it holds had a gradient at any of them: it changes "
            "nothing."
        ).format(optimizer=facts.describe_optimizers([optimizer]), count=f"{len(updates):,}")
        finding = add_update_line(Finding(updates[-1].step, "unreached", sentence, "remark"), updates[-1])
        yield _add_twin(facts, finding, numbers)


def _is_idle(facts: TrainingFacts, number: int) -> bool:
    row = facts.parameters[number]
    return row.requires_grad and not row.called and not row.names and facts.never_had_grad(number)


def _add_twin(facts: TrainingFacts, finding: Finding, numbers: list[int]) -> Finding:
    """Name the model that got gradients in the place of what an optimizer holds."""
    shapes: dict[str, Counter[object]] = {}
    for number, row in enumerate(facts.parameters):
        if row.model and facts.accumulations(number):
            shapes.setdefault(row.model, Counter())[row.shape] += 1
    wanted = Counter(facts.parameters[number].shape for number in numbers)
    twin = next((model for model, found in shapes.items() if found == wanted), None)
    if twin is None:
        return finding
    cause = _("The gradients go to {model}, which has parameters of the same shapes, as a copy has.").format(model=twin)
    advice = _("Call the model whose parameters the optimizer holds, or give it the gradients of the copy.")
    return replace(finding, severity="warning", cause=cause, advice=advice)
