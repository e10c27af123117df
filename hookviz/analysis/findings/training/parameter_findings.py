"""Find parameters that an optimizer holds and does not train: no gradient reaches them, or none any more."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter

from hookviz.analysis.findings.finding import Certainty, Finding, put_line
from hookviz.analysis.findings.hooks.program_text import find_hook_line
from hookviz.analysis.findings.parameters.missing_gradients import (
    advise_on_cut,
    join_names,
    list_missing_gradients,
)
from hookviz.analysis.findings.parameters.places import Place, PlaceFinder
from hookviz.analysis.findings.training.program_calls import (
    add_update_line,
    find_clearing,
    find_freezing,
    find_mark,
)
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import N_, _, join_first, join_list, join_sentences
from hookviz.trace import UpdateRow
from hookviz.trace.traversal import write_access
from hookviz.trace.values import get_norm_nan_inf

FEWEST = 2
"""How many of the last steps of an optimizer have to be without a gradient."""


def find_unreached(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters of modules that an optimizer holds and that had no gradient at any of its steps.

    It is a warning if their module was called, and a remark if it was not, like a part that this data does not need; so
    it is if passes are missing, of which it is not known what they reached.
    Parameters of which the trace knows where the graph is cut are left to ``list_silence``. One that moves without a
    gradient needs none.
    """
    unreached = [number for number in _list_without_gradient(facts) if facts.parameters[number].requires_grad]
    cleared = [number for number in unreached if facts.accumulations(number)]
    if cleared:
        yield _make_cleared(facts, cleared)
    explained = _list_explained(facts)
    unreached = [
        number
        for number in unreached
        if number not in cleared and not explained.issuperset(facts.parameters[number].names)
    ]
    if unreached and (facts.lacks_passes or facts.trace.dropped):
        text = N_("{optimizer} holds {on}, and no gradient reached them in the passes that were recorded.")
        yield _make_update_finding(facts, unreached, "unreached", text, "remark")
        return
    called = [number for number in unreached if facts.parameters[number].called]
    if called:
        text = N_("{optimizer} holds {on}, but no gradient reached them before any of its steps.")
        yield _make_update_finding(facts, called, "unreached", text, "warning")
    uncalled = [number for number in unreached if not facts.parameters[number].called]
    if uncalled:
        text = N_("{optimizer} holds {on}, but their modules were not called, and no gradient reached them.")
        yield _make_update_finding(facts, uncalled, "unreached", text, "remark")


def _list_without_gradient(facts: TrainingFacts) -> list[int]:
    """List the parameters of modules that an optimizer holds, that had no gradient at its steps, and that do not move.

    Of most it is not known whether they move: only the first ones are measured.
    """
    return [
        number
        for number, row in enumerate(facts.parameters)
        if row.held and facts.moves.never_had_grad(number)
        if not facts.moves.needs_no_gradient(number)
    ]


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
    finding = put_line(replace(finding, step=step, cause=cause, hooks=(hook,)), *find_hook_line(hook))
    return replace(finding, advice=_("Take the step in the hook, or leave .grad alone until the step."))


def _add_clearing(facts: TrainingFacts, finding: Finding) -> Finding:
    """Add where gradients were cleared, and what to do: a step before the pass comes too early."""
    last = max(facts.trace.updates, key=lambda row: row.step)
    finding = put_line(add_update_line(finding, last), find_clearing(facts.trace, last), "clears")
    if not facts.steps_come_first:
        return replace(finding, advice=_("Call zero_grad() before backward(), or after step()."))
    cause = _("The first step came before the first pass: in each round, step() runs before backward().")
    return replace(finding, cause=cause, advice=_("Call step() after backward(), and zero_grad() before it."))


def _list_explained(facts: TrainingFacts) -> set[str]:
    """List the parameters of which the trace shows why no gradient reaches them."""
    rows = list_missing_gradients(facts.trace)
    return {name for row in rows if row.place.key not in ("uncalled", "no_pass") for name in row.parameters}


def find_frozen(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an optimizer holds although they do not require a gradient."""
    numbers = [number for number in _list_without_gradient(facts) if not facts.parameters[number].requires_grad]
    if numbers:
        text = N_("{optimizer} holds {on}, which do not require a gradient.")
        yield _add_freezing(facts, _make_update_finding(facts, numbers, "frozen", text, "remark"))


def find_marked(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an attribute was to freeze which torch does not read, and that an optimizer trains."""
    groups: dict[str, list[int]] = {}
    for number, row in enumerate(facts.parameters):
        if row.mark and row.held and row.requires_grad and _is_trained_last(facts, number):
            is_own = row.mark.startswith(row.names)
            groups.setdefault(row.mark.rpartition(".")[2] if is_own else row.mark, []).append(number)
    texts = [source.text for source in facts.trace.sources]
    for mark, numbers in groups.items():
        if "." in mark and any(_reads_flag(text, mark.split(".")[-2]) for text in texts):  # an option of its own
            continue
        text = N_("{mark} = False freezes nothing: {on} still require grad, and {optimizer} trains them.")
        finding = _make_update_finding(facts, numbers, "not_frozen", text, "warning", mark=mark)
        cause, advice = _explain_mark(mark)
        finding = replace(finding, cause=cause, advice=advice)
        yield put_line(finding, find_mark(facts.trace, mark))


def _is_trained_last(facts: TrainingFacts, number: int) -> bool:
    """Whether a pass reached a parameter before the last step of an optimizer, when its mark was seen."""
    optimizers = (optimizer for optimizer in facts.parameters[number].optimizers if optimizer in facts.updates)
    rounds = [facts.list_rounds(optimizer)[-1] for optimizer in optimizers]
    return any(facts.accumulations_between(number, start, row.step) for start, row in rounds)


def _reads_flag(text: str, module: str) -> bool:
    """Whether code may read an attribute requires_grad of a module."""
    if re.search(rf"\b(self|{re.escape(module)})\.requires_grad\b(?!\s*=[^=])", text):
        return True
    return re.search(r"attr\([^()]*,\s*['\"]requires_grad['\"]", text) is not None


def _explain_mark(mark: str) -> tuple[str, str]:
    module, _dot, name = mark.rpartition(".")
    if not module:
        cause = _("torch does not read an attribute {name} of a parameter.").format(name=name)
        return cause, _("Write requires_grad = False.")
    cause = _("torch does not read an attribute requires_grad of a module.")
    return cause, _("Call {module}.requires_grad_(False).").format(module=write_access(module))


def find_shared(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that several modules hold, and that an optimizer trains.

    It is a warning if an optimizer took a step when only some of the uses had written their part of the gradient.
    """
    numbers = [
        number
        for number, row in enumerate(facts.parameters)
        if row.held and len(row.names) > 1 and facts.has_stepped(row) and facts.accumulations(number)
    ]
    split = {number: row for number in numbers if (row := _find_step_between_parts(facts, number)) is not None}
    whole = [number for number in numbers if number not in split]
    if whole:
        text = _("One parameter has several names: {names}. Its gradient is the sum over all its uses.")
        more = _("The same holds for {count} more.").format(count=len(whole) - 1) if len(whole) > 1 else ""
        sentence = join_sentences([text.format(names=join_list(facts.parameters[whole[0]].names)), more])
        yield Finding(facts.accumulations(whole[0])[0].step, "shared", sentence, "remark")
    if split:
        number, update = next(iter(split.items()))
        text = _(
            "One parameter has several names: {names}. A backward pass ran inside another one, as that of a reentrant "
            "checkpoint does, and each wrote a part of its gradient; an optimizer took a step in between, with one of "
            "them."
        )
        sentence = text.format(names=join_list(facts.parameters[number].names))
        advice = _("Use checkpoint(..., use_reentrant=False), or take the step after backward().")
        yield add_update_line(Finding(update.step, "shared", sentence, "warning", advice=advice), update)


def _find_step_between_parts(facts: TrainingFacts, number: int) -> UpdateRow | None:
    """Return the first step of an optimizer between two parts of a gradient that passes inside each other wrote."""
    updates = [row for one in facts.parameters[number].optimizers for row in facts.updates.get(one, ())]
    for earlier, later in pairwise(facts.accumulations(number)):
        (begin, end), (other_begin, other_end) = (_find_span(facts, each.pass_id) for each in (earlier, later))
        if earlier.pass_id != later.pass_id and begin < other_end and other_begin < end:
            between = (row for row in updates if earlier.step < row.step < later.step)
            first = min(between, key=attrgetter("step"), default=None)
            if first is not None:
                return first
    return None


def _find_span(facts: TrainingFacts, pass_id: int) -> tuple[int, int]:
    """Return the first and the last step of a pass, without the forward before it."""
    steps = facts.trace.lookup.steps(pass_id)
    return next((step for step in steps if facts.trace.rows[step].kind == "seed"), steps[0]), steps[-1]


def _make_update_finding(
    facts: TrainingFacts, numbers: list[int], kind: str, text: str, severity: str, **words: str
) -> Finding:
    """A finding about parameters that hold at every step of their optimizers; ``words`` are those of the text."""
    optimizers = sorted({optimizer for number in numbers for optimizer in facts.parameters[number].optimizers})
    names = {"optimizer": facts.describe_optimizers(optimizers), "on": facts.describe(numbers)}
    parameters = facts.name_parameters(numbers)
    sentence = _(text).format(**names, **words)
    return Finding(facts.first_update(optimizers), kind, sentence, severity, parameters=parameters)


# -- parameters that get no gradient any more


def find_stopped(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that an optimizer holds and that no gradient reached in its last steps, but in earlier ones.

    It is a warning if most of those that it trained were frozen. Else it may be meant, as if a part is frozen later.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for number, row in enumerate(facts.parameters):
        for optimizer in row.optimizers if row.held else ():
            first = _find_first_without(facts, number, optimizer)
            if first is not None:
                groups.setdefault((optimizer, first), []).append(number)
    finder = PlaceFinder(facts.trace) if groups else None
    for (optimizer, first), found in groups.items():
        assert finder is not None
        given = _list_given(facts, optimizer, first)
        numbers = [number for number in found if given.isdisjoint((number, *facts.parameters[number].names))]
        if numbers:
            yield _make_stopped(facts, finder, optimizer, first, numbers)


def _find_first_without(facts: TrainingFacts, number: int, optimizer: int) -> int | None:
    """Return the first of the last steps of an optimizer that had no new gradient of a parameter.

    None if there are fewer of them than in a gap that came before: some parts are used now and then. None as well if
    the optimizer holds fewer parameters than before: it may not hold this one any more.
    """
    updates = facts.updates.get(optimizer, [])
    if any(after.held < before.held for before, after in pairwise(updates)):
        return None
    steps = [row.step for row in updates]
    counts = [len(facts.accumulations_between(number, *pair)) for pair in pairwise([0, *steps])]
    with_gradient = [index for index, count in enumerate(counts) if count]
    if not with_gradient:
        return None
    gaps = [later - earlier for earlier, later in pairwise(with_gradient)]
    missed = len(counts) - 1 - with_gradient[-1]
    return steps[with_gradient[-1] + 1] if missed >= max(FEWEST, *gaps, 0) else None


def _list_given(facts: TrainingFacts, optimizer: int, first: int) -> set[int | str]:
    """List which parameters got gradients in other ways since the step before ``first``.

    Those to which a pass returned some are listed by name, those whose ``.grad`` the program wrote by number.
    """
    trace, leaves = facts.trace, facts.trace.lookup.leaf_names
    since = trace.rows[facts.find_update_before(first) or 0 :]
    names = {leaves[row.node] for row in since if row.kind == "returned" and row.node in leaves}
    later = (row for row in facts.updates[optimizer] if row.step >= first)
    values = ((number, trace.values[value]) for row in later for number, value in row.regraded)
    return {*names, *(number for number, value in values if get_norm_nan_inf(value)[0] != 0)}


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
        trained = [number for number in facts.list_held(optimizer) if facts.accumulations(number)]
        severity = "warning" if 2 * len(numbers) > len(trained) else "remark"
        cause = _("They do not require grad any more.")
        advice = _("If they should be trained, unfreeze them before their module is called.")
        return _add_freezing(facts, replace(finding, severity=severity, cause=cause, advice=advice))
    place = _find_place(facts, finder, names[0], first)
    return finding if place is None else _add_place(facts, finding, place)


def _add_freezing(facts: TrainingFacts, finding: Finding) -> Finding:
    """Name the code that may have frozen parameters; of those that were trained first, code that came later."""
    code = find_freezing(facts.trace, during_training=finding.kind == "stopped")
    named = join_first([f"{text} ({place.where})" for place, text in code.pieces])
    text = _("Code that may have frozen them, if it ran: {code}.")
    if code.has_run:
        text = _("Code that ran and may have frozen them: {code}.")
    finding = replace(finding, cause=join_sentences([finding.cause, text.format(code=named)])) if named else finding
    return put_line(finding, code.pieces[0][0] if len(code.pieces) == 1 else None, "freezes")


def _find_place(facts: TrainingFacts, finder: PlaceFinder, name: str, first: int) -> Place | None:
    """Return where the graph is cut in the passes for which a parameter got no gradient."""
    owner = name.rpartition(".")[0]
    module = next((number for number, row in enumerate(facts.trace.modules) if row.name == owner), None)
    earlier, trace = facts.find_update_before(first) or 0, facts.trace
    passes = {row.pass_id for row in trace.rows[earlier:] if row.kind == "seed"}
    is_in_graph = any(row.leaf and row.name == name and row.pass_id in passes for row in trace.tensors)
    return None if module is None or is_in_graph else finder.find_since(earlier, owner, module)


def _add_place(facts: TrainingFacts, finding: Finding, place: Place) -> Finding:
    advice = advise_on_cut(facts.trace, place)
    certainty: Certainty = "proven" if place.is_proven else "likely"
    finding = replace(finding, cause=place.sentence, advice=advice, certainty=certainty)
    return put_line(finding, place.code, place.line_role)
