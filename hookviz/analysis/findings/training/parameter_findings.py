"""Find parameters that an optimizer holds and does not train: no gradient reaches them, or it was cleared."""

from collections.abc import Iterator
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.findings.parameters.missing_gradients import list_missing_gradients
from hookviz.analysis.findings.training.program_calls import add_update_line, find_clearing, put_line
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import N_, _, join_list, join_sentences


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
        return _add_clearing(facts, finding)
    hook = facts.trace.hook(index)
    cause = _("{hook} on {on} set it to None (step {step}).").format(hook=hook.label, on=hook.on, step=f"{step + 1:,}")
    finding = replace(finding, step=step, cause=cause, hooks=(hook,), line=hook.line, file=hook.file, line_role="hook")
    return replace(finding, advice=_("Take the step in the hook, or leave .grad alone until the step."))


def _add_clearing(facts: TrainingFacts, finding: Finding) -> Finding:
    """Add where gradients were cleared, and what to do: a step before the pass comes too early."""
    last = max(facts.trace.updates, key=lambda row: row.step)
    finding = put_line(add_update_line(finding, last), find_clearing(facts.trace, last), "step")
    if not facts.steps_come_first:
        return replace(finding, advice=_("Call zero_grad() before backward(), or after step()."))
    cause = _("The first step came before the first pass: in each round, step() runs before backward().")
    return replace(finding, cause=cause, advice=_("Call step() after backward(), and zero_grad() before it."))


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
