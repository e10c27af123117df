"""Find parameters that get gradients and are in no optimizer, and optimizers that hold what was there before them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Certainty, Finding, describe_passes
from hookviz.analysis.findings.training.gradient_timing import list_idle_optimizers
from hookviz.analysis.findings.training.program_calls import find_replacement, put_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _, join_sentences
from hookviz.trace import ParameterRow


class _Outdated(NamedTuple):
    """Tensors that optimizers hold in place of the parameters of a model."""

    optimizers: list[int]
    certainty: Certainty = "proven"
    is_part: bool = False
    """Whether the optimizers hold other parameters of the model."""


def find_replaced(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that hold tensors like the parameters of a model, instead of the parameters themselves.

    That is so if the model was made again after the optimizer, or got new parameters.
    """
    for root, numbers in _group_untrained(facts).items():
        outdated = _find_outdated(facts, root, numbers)
        if outdated is None:
            continue
        names = {"optimizer": facts.describe_optimizers(outdated.optimizers), "on": facts.describe(numbers)}
        text = _(
            "The tensors in {optimizer} are not the parameters of {model}: its steps do not change {on}, which get the "
            "gradients."
        )
        if outdated.is_part:
            text = _(
                "{optimizer} holds tensors that were replaced: its steps do not change {on}, which took their place "
                "and get the gradients."
            )
        first = facts.accumulations(numbers[0])[0]
        severity = "warning" if outdated.is_part else "error"
        sentence = text.format(model=facts.describe_model(root, numbers), **names)
        finding = Finding(first.step, "replaced", sentence, severity, *_describe_passes(facts, numbers))
        finding = replace(finding, parameters=_name_parameters(facts, numbers), certainty=outdated.certainty)
        yield _add_origin(facts, finding, outdated)


def list_outdated(facts: TrainingFacts) -> set[int]:
    """List the optimizers that hold what was there before the parameters of a model."""
    found = (_find_outdated(facts, root, numbers) for root, numbers in _group_untrained(facts).items())
    return {optimizer for outdated in found if outdated is not None for optimizer in outdated.optimizers}


def _add_origin(facts: TrainingFacts, finding: Finding, outdated: _Outdated) -> Finding:
    """Add where the optimizer was made, and where a part of its parameters was replaced, as far as that is known."""
    made = facts.find_making(outdated.optimizers[0])
    assigned = find_replacement(facts.trace, finding.parameters[0]) if outdated.is_part else None
    sentences = []
    if made is not None:
        name = facts.describe_optimizers(outdated.optimizers[:1])
        sentences.append(_("{optimizer} was made at {where}.").format(optimizer=name, where=made.where))
    if assigned is not None and assigned != made:
        sentences.append(_("{where} assigns new ones.").format(where=assigned.where))
    advice = _("Create the optimizer after the model has its final parameters.")
    if outdated.is_part:
        advice = _("Create the optimizer after they are replaced, or give it the new ones with add_param_group().")
    finding = replace(finding, cause=join_sentences(sentences), advice=advice)
    return put_line(finding, assigned, "replaces") if made is None else put_line(finding, made, "makes")


def find_missing(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that get gradients and are in no optimizer that took a step.

    It is a warning if an optimizer holds other parameters of the same model: then these were probably forgotten.
    """
    idle = {number for one in list_idle_optimizers(facts) for number in one.held}
    for root, numbers in _group_untrained(facts).items() if facts.updates else ():
        if idle.issuperset(numbers) or _find_outdated(facts, root, numbers) is not None:
            continue
        sentence = _(
            "Not in any optimizer that took a step: {on}. Their gradients are computed, and no step uses "
            "them. Pass them to an optimizer, or call requires_grad_(False) to freeze them."
        ).format(on=facts.describe(numbers))
        step = min(facts.accumulations(number)[0].step for number in numbers)
        optimizers = find_optimizers_of(facts, root)
        severity = "warning" if optimizers else "remark"
        finding = Finding(step, "missing", sentence, severity, *_describe_passes(facts, numbers))
        text = _("{optimizer}, which holds other parameters of {model}, was made without them.")
        if not optimizers:
            optimizers = _find_optimizers_beside(facts, numbers)
            text = _("{optimizer}, whose parameters get gradients from the same passes, was made without them.")
        made = facts.find_making(optimizers[0]) if len(optimizers) == 1 else None
        if made is not None:
            name = facts.describe_optimizers(optimizers)
            finding = replace(finding, cause=text.format(optimizer=name, model=facts.describe_model(root, numbers)))
        yield put_line(finding, made, "makes")


def _group_untrained(facts: TrainingFacts) -> dict[str, list[int]]:
    """Group the parameters that got a gradient and are in no optimizer that took a step by their models."""
    models: dict[str, list[int]] = {}
    for number, row in enumerate(facts.parameters):
        if row.held and row.requires_grad and not facts.has_stepped(row) and facts.accumulations(number):
            models.setdefault(row.model, []).append(number)
    return models


def find_optimizers_of(facts: TrainingFacts, model: str) -> list[int]:
    """Return the optimizers that took a step and hold a parameter of a model."""
    rows = (row for row in facts.parameters if facts.has_stepped(row) and row.held and row.model == model)
    return [optimizer for optimizer in _list_holders(rows) if optimizer in facts.updates]


def _find_optimizers_beside(facts: TrainingFacts, numbers: list[int]) -> list[int]:
    """Return the optimizers that took a step and hold what gets its gradients from the same passes as some others."""
    passes = {each.pass_id for number in numbers for each in facts.accumulations(number)}
    beside = (
        row
        for number, row in enumerate(facts.parameters)
        if row.optimizers and passes <= {each.pass_id for each in facts.accumulations(number)}
    )
    return [optimizer for optimizer in _list_holders(beside) if optimizer in facts.updates]


def _find_outdated(facts: TrainingFacts, model: str, untrained: list[int]) -> _Outdated | None:
    """Find the optimizers that hold tensors in no module, one for each untrained parameter of a model.

    They have the shapes of these, unless an optimizer holds the rest of the model.
    """
    holders = find_optimizers_of(facts, model)
    if holders:
        return _find_partly_outdated(facts, set(holders), untrained)
    orphans = [row for row in facts.parameters if not row.held and facts.has_stepped(row)]
    shapes = Counter(row.shape for row in orphans)
    shapes.subtract(facts.parameters[number].shape for number in untrained)
    return _Outdated(_list_holders(orphans)) if orphans and min(shapes.values()) >= 0 else None


def _find_partly_outdated(facts: TrainingFacts, holders: set[int], untrained: list[int]) -> _Outdated | None:
    """Find the optimizers of the rest of a model that hold what its untrained parameters have replaced.

    It is proven if that had the same names. It is likely if it is as many tensors, with as many dimensions, without any
    gradient: those that were replaced before the first call have no names.
    """
    orphans = {
        number: row
        for number, row in enumerate(facts.parameters)
        if not row.held and holders.intersection(row.optimizers)
    }
    names = {name for row in orphans.values() for name in row.names}
    if names and all(names.intersection(facts.parameters[number].names) for number in untrained):
        return _Outdated(_list_holders(orphans.values()), is_part=True)
    unused = [row for number, row in orphans.items() if not row.names and facts.never_had_grad(number)]
    sizes = Counter(len(row.shape) for row in unused)
    sizes.subtract(len(facts.parameters[number].shape) for number in untrained)
    return _Outdated(_list_holders(unused), "likely", is_part=True) if unused and not any(sizes.values()) else None


def _list_holders(rows: Iterable[ParameterRow]) -> list[int]:
    return sorted({optimizer for row in rows for optimizer in row.optimizers})


def _name_parameters(facts: TrainingFacts, numbers: list[int]) -> tuple[str, ...]:
    return tuple(name for number in numbers for name in facts.parameters[number].names)


def _describe_passes(facts: TrainingFacts, numbers: list[int]) -> tuple[tuple[int, ...], str]:
    """The passes in which one of these parameters got a gradient, and their description.

    A parameter that took the place of another one has its name: which of them a pass gave a gradient is not known.
    """
    names = set(_name_parameters(facts, numbers))
    others = (row for number, row in enumerate(facts.parameters) if number not in numbers)
    if any(not names.isdisjoint(row.names) for row in others):
        return (), ""
    passes = tuple(sorted({each.pass_id for number in numbers for each in facts.accumulations(number)}))
    return passes, describe_passes(passes, facts.trace)
