"""Find what optimizers hold in vain, and what they miss: outdated parameters, uncalled models, tensors of a model."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple

from hookviz.analysis.findings.finding import Certainty, Finding, put_line
from hookviz.analysis.findings.training.control_flow import Execution
from hookviz.analysis.findings.training.program_calls import (
    add_update_line,
    find_later_assignment,
    find_replacement,
    find_tensor_making,
    is_in_forward,
    is_replaced,
    read_code,
)
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.support.source_code import CodePlace
from hookviz.trace import ParameterRow, TensorRow
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.value_rows import Shape


class _Outdated(NamedTuple):
    """Tensors that optimizers hold in place of the parameters of a model."""

    optimizers: list[int]
    certainty: Certainty = "proven"
    is_part: bool = False
    """Whether the optimizers hold other parameters of the model."""


def find_replaced(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that hold the tensors that a model had before, instead of its parameters.

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
        is_error = not outdated.is_part and outdated.certainty == "proven"
        severity = "error" if is_error else "warning"
        sentence = text.format(model=_describe_model(facts, root, numbers), **names)
        finding = Finding(first.step, "replaced", sentence, severity, _list_passes(facts, numbers))
        finding = replace(finding, parameters=facts.name_parameters(numbers), certainty=outdated.certainty)
        yield _add_origin(facts, finding, outdated, _describe_model(facts, root, numbers))


def _list_outdated(facts: TrainingFacts) -> set[int]:
    """List the optimizers that hold what was there before the parameters of a model."""
    found = (_find_outdated(facts, root, numbers) for root, numbers in _group_untrained(facts).items())
    return {optimizer for outdated in found if outdated is not None for optimizer in outdated.optimizers}


def _add_origin(facts: TrainingFacts, finding: Finding, outdated: _Outdated, model: str) -> Finding:
    """Add where the optimizer was made, and where its parameters were replaced, as far as that is known."""
    made, execution = facts.find_making(outdated.optimizers[0]), Execution(facts.trace)
    assigned = _find_assignment(facts, finding.parameters, outdated)
    assigned = assigned if assigned is not None and execution.may_have_run(assigned) else None
    sentences = []
    if made is not None:
        name, where = facts.describe_optimizers(outdated.optimizers[:1]), _describe_calling(execution, made)
        sentences.append(_("{optimizer} was made at {where}.").format(optimizer=name, where=where))
    if assigned is not None and assigned != made:
        sentences.append(_("{where} assigns new ones.").format(where=_describe_calling(execution, assigned)))
    elif made is not None and not outdated.is_part:
        again = find_later_assignment(facts.trace, model, execution.find_helper_call(made) or made)
        text = _("After that, {where} assigns {model}.")
        sentences += [] if again is None else [text.format(where=again.where, model=model)]
    advice = _("Create the optimizer with the parameters of {model}, after the model has its final ones.")
    if outdated.is_part:
        advice = _("Create the optimizer after they are replaced, or give it the new ones with add_param_group().")
    if assigned is not None and is_in_forward(facts.trace, assigned):
        advice = _("Make them once, outside of forward, which replaces them at each call.")
    finding = replace(finding, cause=join_sentences(sentences), advice=advice.format(model=model))
    return put_line(finding, assigned, "replaces") if made is None else put_line(finding, made, "makes")


def _describe_calling(execution: Execution, place: CodePlace) -> str:
    """Describe a line; of one in a helper, also the only line that calls the helper."""
    call = execution.find_helper_call(place)
    text = _("{where} (called at {call})")
    return place.where if call is None else text.format(where=place.where, call=call.where)


def _find_assignment(facts: TrainingFacts, names: Sequence[str], outdated: _Outdated) -> CodePlace | None:
    """Return the line that assigns new parameters; None if unclear.

    Of a model that was made again, one layer may have been assigned before: the line has to assign all of them.
    """
    places = [find_replacement(facts.trace, name) for name in (names[:1] if outdated.is_part else names)]
    return places[0] if len(set(places)) == 1 else None


def find_missing(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that get gradients, that no optimizer holds, and whose numbers nothing else changes.

    It is a warning if an optimizer holds other parameters of the same model: then these were probably forgotten.
    """
    for root, untrained in _group_untrained(facts).items() if facts.updates else ():
        free = [number for number in untrained if not facts.parameters[number].optimizers]
        numbers = _list_still(facts, free)
        if not numbers or _find_outdated(facts, root, untrained) is not None:
            continue
        text = _(
            "Not in any optimizer that took a step: {on}. Their gradients are computed. Pass them to an optimizer, or "
            "call requires_grad_(False) to freeze them."
        )
        step = min(facts.accumulations(number)[0].step for number in numbers)
        severity = "warning" if _find_optimizers_of(facts, root) else "remark"
        sentence = text.format(on=facts.describe(numbers))
        finding = Finding(step, "missing", sentence, severity, _list_passes(facts, numbers))
        yield _add_forgetting(facts, finding, root, numbers)


def _list_still(facts: TrainingFacts, numbers: list[int]) -> list[int]:
    """List the parameters that nothing moves; what moves one is taken to move those of unknown numbers, too."""
    if not any(map(facts.moves.was_moved, numbers)):
        return numbers
    return [number for number in numbers if facts.moves.stays_equal(number) and not facts.moves.was_moved(number)]


def _add_forgetting(facts: TrainingFacts, finding: Finding, root: str, numbers: list[int]) -> Finding:
    """Add the optimizer that was made without some parameters, if it is the only one of their model or their passes."""
    optimizers, model = _find_optimizers_of(facts, root), _describe_model(facts, root, numbers)
    names = facts.name_parameters(number for one in optimizers for number in facts.list_held(one))
    if not any(name.startswith(f"{model}.") for name in names):
        model = root if any(row.name == root for row in facts.trace.modules) else ""
    text = _("{optimizer}, which holds other parameters of {model}, was made without them.")
    if not optimizers or not model:
        optimizers = _find_optimizers_beside(facts, numbers)
        text = _("{optimizer}, whose parameters get gradients from the same passes, was made without them.")
    made = facts.find_making(optimizers[0]) if len(optimizers) == 1 else None
    if made is not None:
        text = text.format(optimizer=facts.describe_optimizers(optimizers), model=model)
        finding = replace(finding, cause=text)
    return put_line(finding, made, "makes")


def _describe_model(facts: TrainingFacts, root: str, parameters: Sequence[int]) -> str:
    """Name the outermost modules with these parameters: of ``self``, which is no module, such as ``self.net``."""
    held = facts.name_parameters(parameters)
    every = (row.name for row in facts.trace.modules if row.name == root or row.name.startswith(f"{root}."))
    names = [name for name in every if any(one.startswith(f"{name}.") for one in held)]
    outermost = [one for one in names if not any(one.startswith(f"{other}.") for other in names)]
    return join_list(list(dict.fromkeys(outermost))) if outermost else root


def _group_untrained(facts: TrainingFacts) -> dict[str, list[int]]:
    """Group the parameters that got a gradient and are in no optimizer that took a step by their models."""
    models: dict[str, list[int]] = {}
    for number, row in enumerate(facts.parameters):
        if row.held and row.requires_grad and not facts.has_stepped(row) and facts.accumulations(number):
            models.setdefault(row.model, []).append(number)
    return models


def _find_optimizers_of(facts: TrainingFacts, model: str) -> list[int]:
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
    """Find the optimizers that hold tensors in no module, in place of the untrained parameters of a model.

    Nothing is outdated if something else moves the parameters.
    """
    if any(map(facts.moves.was_moved, untrained)):
        return None
    holders = _find_optimizers_of(facts, model)
    if holders:
        return _find_partly_outdated(facts, set(holders), untrained) or _find_idle_tensors(facts, untrained)
    return _find_equal_tensors(facts, untrained) or _find_idle_tensors(facts, untrained)


def _find_equal_tensors(facts: TrainingFacts, untrained: list[int]) -> _Outdated | None:
    """Find the optimizers that hold a tensor in no module for each untrained parameter of a model, of the same shape.

    They are not outdated if these tensors have gradients, as scores of weights or copies of another type do.
    """
    orphans = [number for number, row in enumerate(facts.parameters) if not row.held and facts.has_stepped(row)]
    rows = [facts.parameters[number] for number in orphans]
    shapes = Counter(row.shape for row in rows)
    shapes.subtract(facts.parameters[number].shape for number in untrained)
    first = min(facts.accumulations(number)[0].step for number in untrained)
    if not orphans or min(shapes.values()) < 0 or not _have_gradients_at_steps(facts, untrained, _list_holders(rows)):
        return None
    return _Outdated(_list_holders(rows)) if all(_lacks_gradient(facts, one, first) for one in orphans) else None


def _have_gradients_at_steps(facts: TrainingFacts, untrained: list[int], optimizers: list[int]) -> bool:
    """Whether parameters get as many gradients as some optimizers take steps: a copy that serves one round does not."""
    steps = max((len(facts.updates.get(optimizer, ())) for optimizer in optimizers), default=0)
    return all(len(facts.accumulations(number)) >= steps for number in untrained)


def _find_idle_tensors(facts: TrainingFacts, untrained: list[int]) -> _Outdated | None:
    """Find the optimizers none of whose tensors is in a module, or had a gradient, whatever the shapes are.

    It is proven if no other optimizer took a step, and the parameters are known to stay as they are. Otherwise it takes
    as many tensors with as many dimensions and, beside other optimizers, a line that assigns new ones.
    """
    idle = _list_idle_optimizers(facts)
    rows = [row for row in facts.parameters if not idle.isdisjoint(row.optimizers)]
    is_free = not any(facts.parameters[number].optimizers for number in untrained)
    if not idle or not is_free or not _have_gradients_at_steps(facts, untrained, sorted(idle)):
        return None
    if _may_be_in_graph(facts, {row.shape for row in rows}):
        return None
    models = _group_untrained(facts)
    is_alike = any(_have_equal_dimensions(facts, rows, numbers) for numbers in (untrained, chain(*models.values())))
    is_alone, is_still = idle == facts.updates.keys(), any(map(facts.moves.stays_equal, untrained))
    if is_alone and is_still and not facts.lacks_passes and (is_alike or len(models) == 1):
        return _Outdated(sorted(idle))
    is_assigned = all(is_replaced(facts.trace, name) for name in facts.name_parameters(untrained))
    return _Outdated(sorted(idle), "likely") if is_alike and (is_alone or is_assigned) else None


def _have_equal_dimensions(facts: TrainingFacts, rows: Iterable[ParameterRow], numbers: Iterable[int]) -> bool:
    """Whether tensors are as many as some parameters, with as many dimensions."""
    return Counter(len(row.shape) for row in rows) == Counter(len(facts.parameters[one].shape) for one in numbers)


def _list_idle_optimizers(facts: TrainingFacts) -> set[int]:
    """List the optimizers that took several steps, and hold only tensors in no module that never had a gradient."""
    idle = {optimizer for optimizer, updates in facts.updates.items() if len(updates) > 1}
    wanting = set[int]()
    for number, row in enumerate(facts.parameters):
        is_used = row.held or not facts.moves.never_had_grad(number) or facts.moves.needs_no_gradient(number)
        if is_used:
            idle.difference_update(row.optimizers)
        if row.requires_grad:
            wanting.update(row.optimizers)
    return idle & wanting


def _may_be_in_graph(facts: TrainingFacts, shapes: set[Shape]) -> bool:
    """Whether a leaf of a pass that is no parameter of a module has one of these shapes, or one that is not known."""
    names = {name for row in facts.parameters if row.held for name in row.names}
    leaves = (row for row in facts.trace.tensors if row.leaf and row.name not in names)
    values = (facts.leaf_values[row.pass_id][row.node] for row in leaves)
    return any(value is None or value[0] in shapes for value in values)


def _lacks_gradient(facts: TrainingFacts, number: int, start: int) -> bool:
    """Whether a parameter has no gradient at the steps of its optimizers from a step on, of which there are some."""
    updates = (row for one in facts.parameters[number].optimizers for row in facts.updates.get(one, ()))
    later = [row for row in updates if row.step > start]
    return bool(later) and all(number in row.without_grad for row in later)


def _find_partly_outdated(facts: TrainingFacts, holders: set[int], untrained: list[int]) -> _Outdated | None:
    """Find the optimizers of the rest of a model that hold what its untrained parameters have replaced.

    It is proven if that had the same names. It is likely if it is as many tensors, with as many dimensions, without any
    gradient, and a line of the program assigns new ones: those that were replaced before the first call have no names.
    """
    orphans = {
        number: row
        for number, row in enumerate(facts.parameters)
        if not row.held and holders.intersection(row.optimizers)
    }
    names = {name for row in orphans.values() for name in row.names}
    if names and all(names.intersection(facts.parameters[number].names) for number in untrained):
        return _Outdated(_list_holders(orphans.values()), is_part=True)
    unused = [row for number, row in orphans.items() if not row.names and facts.moves.never_had_grad(number)]
    if not unused or not _have_equal_dimensions(facts, unused, untrained):
        return None
    if not all(is_replaced(facts.trace, name) for name in facts.name_parameters(untrained)):
        return None
    return _Outdated(_list_holders(unused), "likely", is_part=True)


def _list_holders(rows: Iterable[ParameterRow]) -> list[int]:
    return sorted({optimizer for row in rows for optimizer in row.optimizers})


def _list_passes(facts: TrainingFacts, numbers: list[int]) -> tuple[int, ...]:
    """List the passes in which one of these parameters got a gradient.

    A parameter that took the place of another one has its name: which of them a pass gave a gradient is not known.
    """
    names = set(facts.name_parameters(numbers))
    others = (row for number, row in enumerate(facts.parameters) if number not in numbers)
    if any(not names.isdisjoint(row.names) for row in others):
        return ()
    return tuple(sorted({each.pass_id for number in numbers for each in facts.accumulations(number)}))


# -- models that are never called


def find_uncalled(facts: TrainingFacts) -> Iterator[Finding]:
    """Find optimizers that took steps while none of their parameters had a gradient, or was in a called module.

    It is a warning if a model with parameters of the same shapes got gradients, as a copy does, or if nothing is
    trained: no other optimizer took a step, and no leaf is known to have moved.
    """
    outdated = _list_outdated(facts) if facts.updates else set()
    for optimizer, updates in facts.updates.items():
        numbers = facts.list_held(optimizer)
        if optimizer in outdated or len(updates) < 2 or not all(_is_idle(facts, number) for number in numbers):
            continue
        written = chain.from_iterable(facts.written_of.values())
        if not numbers or not any(updates[0].step < step < updates[-1].step for step in written):
            continue
        text = _("{optimizer} took {count} steps, and none of what it holds had a gradient at any of them.")
        sentence = text.format(optimizer=facts.describe_optimizers([optimizer]), count=f"{len(updates):,}")
        severity = "remark" if len(facts.updates) > 1 or _has_leaf_moved(facts) else "warning"
        finding = add_update_line(Finding(updates[-1].step, "unreached", sentence, severity), updates[-1])
        yield _add_twin(facts, finding, numbers)


def _has_leaf_moved(facts: TrainingFacts) -> bool:
    """Whether a leaf is known to have had other numbers in a pass than in the one before."""
    for earlier, later in pairwise(facts.leaf_values.values()):
        if any(None not in (later[leaf], earlier.get(leaf)) and later[leaf] != earlier[leaf] for leaf in later):
            return True
    return False


def _is_idle(facts: TrainingFacts, number: int) -> bool:
    row = facts.parameters[number]
    is_unused = row.requires_grad and not row.called and not row.names
    return is_unused and facts.moves.never_had_grad(number) and not facts.moves.needs_no_gradient(number)


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


# -- tensors that are no parameters


def find_plain_tensors(facts: TrainingFacts) -> Iterator[Finding]:
    """Find leaves that get gradients in several passes, keep their numbers, and are not parameters.

    It is a warning if a model that an optimizer trains uses one that it was not given: then it is one of its own. A
    tensor that is an input may get a gradient for its own sake, as may one for which ``torch.autograd.grad`` is asked.
    """
    if not facts.updates or facts.lacks_passes:
        return
    names = {name for row in facts.parameters for name in row.names}
    asked = {row.node for row in facts.trace.rows if row.kind == "returned"}
    leaves: dict[int, list[TensorRow]] = {}
    for row in facts.trace.tensors:
        if row.leaf and row.name not in names and row.node not in asked:
            leaves.setdefault(row.node, []).append(row)
    for node, rows in leaves.items():
        written = facts.written_of.get(node, [])
        if len(written) > 1 and _is_unchanged(facts, rows):
            yield from _judge(facts, rows[-1], written)


def _is_unchanged(facts: TrainingFacts, rows: list[TensorRow]) -> bool:
    """Whether the numbers of a tensor are known and the same in all passes, and no optimizer can hold it."""
    values = [facts.leaf_values[row.pass_id][row.node] for row in rows]
    if values[0] is None or any(before != after for before, after in pairwise(values)):
        return False
    return all(row.held or row.shape != values[0][0] for row in facts.parameters)


def _add_conversion(finding: Finding) -> Finding:
    """Say why an ``nn.Parameter`` is none that is converted when it is made."""
    cause = _(
        "It was converted, as .to() or .double() does, before a module got it: the result is a tensor, no parameter."
    )
    return replace(finding, cause=cause, advice=_("Convert first: nn.Parameter(tensor.to(...))."))


def _judge(facts: TrainingFacts, row: TensorRow, written: list[int]) -> Iterator[Finding]:
    """Yield the finding of a tensor that a model did not get as an input, or that no model used."""
    trace = facts.trace
    starts = [start for (start, _slot), (end, _output) in trace.edges.items() if end == row.node]
    users = [trace.owners.get(start) for start in starts]
    calls = {[*iter_enclosing_calls(trace, call)][-1] for call in users if call is not None}
    is_own = all(trace.calls[call].takes_grad is False for call in calls)
    if not users or not is_own or (calls and None in users):
        return
    model = trace.modules[trace.calls[min(calls)].module].name if calls else ""
    passes = tuple(trace.rows[step].pass_id for step in written)
    value = facts.leaf_values[row.pass_id][row.node]
    shape = str(value[0]) if value is not None else ""
    names = {
        "on": row.name or _("a tensor of shape {shape}").format(shape=shape),
        "model": model,
        "count": f"{len(passes):,}",
    }
    text = _(
        "{on} requires grad and is in no optimizer: {count} passes computed its gradient, and its numbers stayed the "
        "same."
    )
    if model:
        text = _("{model} uses {on}, which requires grad and is not among its parameters: its numbers stayed the same.")
    severity = "warning" if model and _find_optimizers_of(facts, model.partition(".")[0]) else "remark"
    finding = Finding(written[0], "missing", text.format(**names), severity, passes)
    advice = _("Make it an nn.Parameter of {model}, or give it to the optimizer.") if model else ""
    finding = replace(finding, advice=advice.format(**names) or _("Give it to the optimizer."))
    if not (row.name or model) and {trace.ops[start] for start in starts} == {"ToCopyBackward0"}:
        finding = _add_conversion(finding)
    place = find_tensor_making(trace, row.name)
    if place is not None and model:
        text = _("{code} makes a tensor and not a parameter.").format(code=read_code(trace, place))
        finding = replace(finding, cause=text)
    yield put_line(finding, place)
