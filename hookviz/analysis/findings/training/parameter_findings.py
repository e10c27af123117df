"""Find parameters that a training leaves out: in no optimizer, never reached by a gradient, or replaced."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.hooks.program_text import find_clearing
from hookviz.analysis.findings.parameters.missing_gradients import list_missing_gradients
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import N_, _, join_list, join_sentences


def find_replaced(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that hold tensors like the parameters of a model, instead of the parameters themselves.

    That is so if the model was made again after the optimizer, or got new parameters.
    """
    untrained = _list_untrained(facts)
    for root, numbers in _group_by_model(facts, untrained).items():
        optimizers = _find_outdated_optimizers(facts, root, numbers)
        if not optimizers:
            continue
        first = facts.accumulations(numbers[0])[0]
        names = {"optimizer": facts.describe_optimizers(optimizers), "on": facts.describe(numbers), "model": root}
        yield Finding(
            first.step,
            "replaced",
            _(
                "The tensors in {optimizer} are not the parameters of {model}: its steps do not change {on}, "
                "which get the gradients. Create the optimizer after the model has its final parameters."
            ).format(**names),
            "error",
            *_describe_passes(facts, numbers),
        )


def find_missing(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that get gradients and are in no optimizer that took a step.

    It is a warning if an optimizer holds other parameters of the same model: then these were probably forgotten.
    """
    for root, numbers in _group_by_model(facts, _list_untrained(facts)).items():
        if _find_outdated_optimizers(facts, root, numbers):
            continue
        is_partly_trained = any(facts.has_stepped(row) and row.held and row.model == root for row in facts.parameters)
        if facts.updates:
            sentence = _(
                "Not in any optimizer that took a step: {on}. Their gradients are computed, and no step uses "
                "them. Pass them to an optimizer, or call requires_grad_(False) to freeze them."
            ).format(on=facts.describe(numbers))
            step = min(facts.accumulations(number)[0].step for number in numbers)
            severity = "warning" if is_partly_trained else "remark"
            yield Finding(step, "missing", sentence, severity, *_describe_passes(facts, numbers))


def find_unreached(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters of modules that an optimizer holds and that had no gradient at any of its steps.

    It is a warning if their module was called, and a remark if it was not, like a part that this data does not need.
    Parameters of which the trace knows where the graph is cut are left to ``list_silence``.
    """
    unreached = [
        number
        for number, row in enumerate(facts.parameters)
        if row.held and row.requires_grad and facts.never_had_grad(number)
    ]
    cleared = [number for number in unreached if facts.accumulations(number)]
    if cleared:
        yield _make_cleared(facts, cleared)
    explained = _list_explained(facts)
    unreached = [
        number
        for number in unreached
        if number not in cleared and not explained.issuperset(facts.parameters[number].names)
    ]
    for is_called, text, severity in (
        (
            True,
            N_("{optimizer} holds {on}, but no gradient reached them before any of its steps: they are not trained."),
            "warning",
        ),
        (
            False,
            N_("{optimizer} holds {on}, but their modules were not called, and no gradient reached them."),
            "remark",
        ),
    ):
        numbers = [number for number in unreached if facts.parameters[number].called == is_called]
        if numbers:
            yield _make_update_finding(facts, numbers, "unreached", text, severity)


def _make_cleared(facts: TrainingFacts, numbers: list[int]) -> Finding:
    """The finding of parameters whose gradients were removed after a pass wrote them, and before each step."""
    text = N_(
        "The passes wrote gradients of {on}, and .grad was None at each step of {optimizer}: it was cleared in between."
    )
    finding = _make_update_finding(facts, numbers, "cleared", text, "warning")
    rows = facts.trace.rows
    hooks = facts.trace.lookup.steps_of_kinds("post_accumulate_hook")
    step = next((i for i in hooks if rows[i].before is not None and rows[i].after is None), None)
    if step is None or (index := rows[step].hook) is None:
        file, line = find_clearing(facts.trace) or (finding.file, finding.line)
        advice = _("Call zero_grad() before backward(), or after step().")
        return replace(finding, advice=advice, file=file, line=line)
    hook = facts.trace.hook(index)
    cause = _("{hook} on {on} set it to None (step {step}).").format(hook=hook.label, on=hook.on, step=f"{step + 1:,}")
    finding = replace(finding, step=step, cause=cause, hooks=(hook,), line=hook.line, file=hook.file, line_role="hook")
    return replace(finding, advice=_("Take the step in the hook, or leave .grad alone until the step."))


def _list_explained(facts: TrainingFacts) -> set[str]:
    """List the parameters of which the trace shows why no gradient reaches them."""
    rows = list_missing_gradients(facts.trace)
    return {name for row in rows if row.place not in ("uncalled", "no_pass") for name in row.parameters}


def find_frozen(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an optimizer holds although they do not require a gradient."""
    numbers = [
        number
        for number, row in enumerate(facts.parameters)
        if row.held and not row.requires_grad and facts.never_had_grad(number)
    ]
    if numbers:
        yield _make_update_finding(
            facts,
            numbers,
            "frozen",
            N_("{optimizer} holds {on}, which do not require a gradient: its steps leave them as they are."),
            "remark",
        )


def find_shared(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that several modules hold, and that an optimizer trains."""
    numbers = [
        number
        for number, row in enumerate(facts.parameters)
        if row.held and len(row.names) > 1 and facts.has_stepped(row) and facts.accumulations(number)
    ]
    if numbers:
        first = facts.parameters[numbers[0]]
        names = join_list(first.names)
        more = _("The same holds for {count} more.").format(count=len(numbers) - 1) if len(numbers) > 1 else ""
        sentence = join_sentences(
            [
                _("One parameter has several names: {names}. Its gradient is the sum over all its uses.").format(
                    names=names
                ),
                more,
            ]
        )
        yield Finding(facts.accumulations(numbers[0])[0].step, "shared", sentence, "remark")


def _make_update_finding(facts: TrainingFacts, numbers: list[int], kind: str, text: str, severity: str) -> Finding:
    """A finding about parameters that hold at every step of their optimizers."""
    optimizers = sorted({optimizer for number in numbers for optimizer in facts.parameters[number].optimizers})
    names = {"optimizer": facts.describe_optimizers(optimizers), "on": facts.describe(numbers)}
    parameters = tuple(name for number in numbers for name in facts.parameters[number].names)
    return Finding(facts.first_update(optimizers), kind, _(text).format(**names), severity, parameters=parameters)


def _list_untrained(facts: TrainingFacts) -> list[int]:
    """The parameters of models that got a gradient and are in no optimizer that took a step."""
    return [
        number
        for number, row in enumerate(facts.parameters)
        if row.held and row.requires_grad and not facts.has_stepped(row) and facts.accumulations(number)
    ]


def _group_by_model(facts: TrainingFacts, numbers: list[int]) -> dict[str, list[int]]:
    models: dict[str, list[int]] = {}
    for number in numbers:
        models.setdefault(facts.parameters[number].model, []).append(number)
    return models


def _find_outdated_optimizers(facts: TrainingFacts, model: str, untrained: list[int]) -> list[int]:
    """The optimizers that hold tensors in no module, one for each untrained parameter of a model, of the same shape.

    Empty if an optimizer holds a parameter of the model itself.
    """
    if any(facts.has_stepped(row) and row.held and row.model == model for row in facts.parameters):
        return []
    orphans = [row for row in facts.parameters if not row.held and facts.has_stepped(row)]
    shapes = Counter(row.shape for row in orphans)
    shapes.subtract(facts.parameters[number].shape for number in untrained)
    if not orphans or min(shapes.values()) < 0:
        return []
    return sorted({optimizer for row in orphans for optimizer in row.optimizers})


def _describe_passes(facts: TrainingFacts, numbers: list[int]) -> tuple[tuple[int, ...], str]:
    """The passes in which one of these parameters got a gradient, and their description.

    A parameter that took the place of another one has its name: which of them a pass gave a gradient is not known.
    """
    names = {name for number in numbers for name in facts.parameters[number].names}
    others = (row for number, row in enumerate(facts.parameters) if number not in numbers)
    if any(not names.isdisjoint(row.names) for row in others):
        return (), ""
    passes = tuple(sorted({each.pass_id for number in numbers for each in facts.accumulations(number)}))
    return passes, describe_passes(passes, facts.trace)
