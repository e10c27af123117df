"""Find modules that are trained in evaluation mode, and dropouts that drop in an evaluation."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.parameters.cutting_code import find_function, get_last_name, iter_nodes, parse_row
from hookviz.analysis.findings.parameters.program_functions import Region
from hookviz.analysis.findings.training.control_flow import may_be_left_out
from hookviz.analysis.findings.training.program_calls import find_evaluation
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import N_, _, join_first, pluralize
from hookviz.support.source_code import CodePlace
from hookviz.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls

_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
_FUNCTIONAL = ("F", "functional")
"""Names under which a program knows ``torch.nn.functional``."""


class EvaluatedCall(NamedTuple):
    """A call of a dropout in evaluation mode, in a model that was in this mode as a whole."""

    step: int
    module: int
    model: int
    """The call of the model."""


_ON_PURPOSE = N_("That is right if you want it so; otherwise call train() on {model} before the training goes on.")


def find_eval_norms(facts: TrainingFacts) -> Iterator[Finding]:
    """Find batch norms that are trained in evaluation mode."""
    steps: dict[int, int] = {}
    passed = _list_evaluated_passes(facts) if any(row.eval_norms for row in facts.trace.updates) else {}
    for optimizer in facts.updates:
        for start, row in facts.list_rounds(optimizer):
            for module in row.eval_norms:
                if any(start < step < row.step for step in passed.get(module, ())):
                    steps[module] = min(row.step, steps.get(module, row.step))
    if steps:
        sentence = _(
            "Trained in evaluation mode: {on}. They normalise with their running statistics and do not "
            "update these. That is right if you freeze them on purpose; otherwise call train() on the "
            "model."
        ).format(on=_name_modules(facts.trace, steps))
        finding = Finding(min(steps.values()), "eval_norm", sentence, "remark")
        line = find_evaluation(facts.trace, facts.trace.module(next(iter(steps))))
        yield put_line(finding, line, "evaluates")


def _list_evaluated_passes(facts: TrainingFacts) -> dict[int, list[int]]:
    """Map modules to the steps in which passes went through calls of theirs in evaluation mode."""
    trace = facts.trace
    found: dict[int, list[int]] = {}
    for step, row in enumerate(trace.rows):
        owner = trace.owners.get(row.own_node) if row.kind == "compute" else None
        if owner is not None and trace.calls[owner].evaluates:
            found.setdefault(trace.calls[owner].module, []).append(step)
    return found


def find_frozen_norms(facts: TrainingFacts) -> Iterator[Finding]:
    """Find batch norms whose parameters are frozen, and which normalise with the statistics of each batch."""
    trace = facts.trace
    rows = [(name.rpartition(".")[0], number) for number, row in enumerate(facts.parameters) for name in row.names]
    trained = {owner for owner, number in rows if facts.parameters[number].requires_grad or facts.accumulations(number)}
    frozen = {owner for owner, _number in rows} - trained
    numbers = {number for number, row in enumerate(trace.modules) if row.name in frozen and row.kind in _NORMS}
    steps: dict[int, int] = {}
    for step, row in enumerate(trace.rows) if numbers and facts.updates else ():
        call = trace.calls[row.own_call] if row.kind == "call" else None
        if (
            call is not None
            and call.module in numbers
            and not call.evaluates
            and not call.recomputed
            and call.mode != "checkpoint"
        ):
            steps.setdefault(call.module, step)
    if steps:
        sentence = _(
            "The parameters of {on} are frozen, but it ran in training mode: it normalises with the mean and variance "
            "of each batch."
        ).format(on=_name_modules(trace, steps))
        advice = _("If it should use its running statistics, call its eval() after each train() of the model.")
        yield Finding(min(steps.values()), "frozen_norm", sentence, "remark", advice=advice)


def find_eval_dropouts(facts: TrainingFacts) -> Iterator[Finding]:
    """Find models with dropout that are in evaluation mode as a whole, in passes whose gradients an optimizer used."""
    calls = list(_list_evaluated(facts))
    trained = _find_trained_calls(facts) if calls else {}
    found: dict[int, list[EvaluatedCall]] = {}
    for call in calls:
        if call.model in trained and not _is_paired(facts.trace, call.model, trained):
            found.setdefault(facts.trace.calls[call.model].module, []).append(call)
    for model, those in found.items():
        yield _make_eval_dropout(facts.trace, model, those, trained)


def _is_paired(trace: TraceData, model: int, trained: Mapping[int, set[int]]) -> bool:
    """Whether a pass that goes through a call of a model also goes through one in training mode, as for a target."""
    others = (call for call in trained if trace.calls[call].module == trace.calls[model].module)
    return any(not trace.calls[call].evaluates and trained[call] & trained[model] for call in others)


def _make_eval_dropout(
    trace: TraceData, model: int, calls: list[EvaluatedCall], trained: Mapping[int, set[int]]
) -> Finding:
    """Make the finding of a model; ``trained``: call of a model → the passes that an optimizer used."""
    name, passes = trace.module(model), tuple(sorted({one for call in calls for one in trained[call.model]}))
    others = [call for call in trained if trace.calls[call].module == model and not trace.calls[call].evaluates]
    before = len({one for call in others for one in trained[call] if one < passes[0]})
    names = {"on": _name_modules(trace, (call.module for call in calls)), "model": name}
    sentence = _("{model} was trained in evaluation mode: {on} dropped nothing.").format(**names)
    finding = Finding(calls[0].step, "eval_dropout", sentence, "remark", passes)
    used = pluralize(before, _("{count} pass"), _("{count} passes"))
    cause = _("Before that, an optimizer used {passes} in training mode.").format(passes=used)
    finding = replace(finding, cause=cause if before else "", advice=_(_ON_PURPOSE).format(model=name))
    return put_line(finding, find_evaluation(trace, name), "evaluates")


def _list_evaluated(facts: TrainingFacts) -> Iterator[EvaluatedCall]:
    """Yield the calls of dropouts in evaluation mode, of models that were in evaluation mode as a whole."""
    trace = facts.trace
    for call, step in facts.evaluated_calls.items():
        module, model = trace.calls[call].module, _find_outermost(trace, call)
        if trace.modules[module].drops and trace.calls[model].evaluates:
            yield EvaluatedCall(step, module, model)


def _find_outermost(trace: TraceData, call: int) -> int:
    *_inner, outermost = iter_enclosing_calls(trace, call)
    return outermost


def _find_trained_calls(facts: TrainingFacts) -> dict[int, set[int]]:
    """Find the calls of models whose gradients an optimizer used: call → the passes of which this is so."""
    trace, used = facts.trace, _find_used_passes(facts)
    found: dict[int, set[int]] = {}
    for row in trace.rows:
        owner = trace.owners.get(row.own_node) if row.kind == "compute" and row.pass_id in used else None
        if owner is not None and trace.ops[row.own_node] != "AccumulateGrad":
            found.setdefault(owner, set()).add(row.pass_id)
    trained: dict[int, set[int]] = {}
    for owner, passes in found.items():
        call = _find_outermost(trace, owner)
        prefix = f"{trace.module(trace.calls[call].module)}."
        own = {one for one in passes if any(name.startswith(prefix) for name in used[one])}
        if own:
            trained.setdefault(call, set()).update(own)
    return trained


def _find_used_passes(facts: TrainingFacts) -> dict[int, set[str]]:
    """Find the passes whose gradients an optimizer used: pass → the names of the parameters that they are of."""
    used: dict[int, set[str]] = {}
    for optimizer in facts.updates:
        held = facts.list_held(optimizer)
        for start, row in facts.list_rounds(optimizer):
            for number in held:
                for each in reversed(facts.accumulations_between(number, start, row.step)):
                    used.setdefault(each.pass_id, set()).update(facts.parameters[number].names)
                    if not each.before:  # what earlier passes wrote was cleared
                        break
    return used


def _name_modules(trace: TraceData, modules: Iterable[int]) -> str:
    """Name some modules, each once."""
    return join_first([trace.module(module) for module in dict.fromkeys(modules)])


# -- dropouts that know no mode


def find_functional_dropouts(facts: TrainingFacts) -> Iterator[Finding]:
    """Find functional dropouts that do not know the mode, in the forward of modules that ran in evaluation mode."""
    trace = facts.trace
    steps: dict[int, int] = {}
    for call, step in facts.evaluated_calls.items():
        steps.setdefault(trace.calls[call].module, step)
    code = CallCode(trace)
    found: dict[CodePlace, dict[int, int]] = {}
    for module, step in steps.items():
        forward = code.find_forward(module)
        for place in _list_droppings(trace, code.follow([forward.region])) if forward is not None else ():
            found.setdefault(place, {})[module] = step
    for place, modules in found.items():
        sentence = _(
            "{on} drops numbers in evaluation mode, too: its forward calls dropout without training=self.training, "
            "and torch.nn.functional.dropout drops unless it is told not to."
        ).format(on=_name_modules(trace, modules))
        finding = Finding(min(modules.values()), "always_drops", sentence, "remark")
        advice = _("Pass training=self.training, or use torch.nn.Dropout.")
        yield put_line(replace(finding, advice=advice), place)


def _list_droppings(trace: TraceData, regions: Iterable[Region]) -> Iterator[CodePlace]:
    """Yield the lines of functional dropouts that are not told the mode, and that no condition may leave out.

    There are none if the code asks for the mode itself, or may hand it to a function that drops.
    """
    trees = [(trace.sources[index].file, parse_row(trace.sources[index]), lines) for index, lines in regions]
    parts = [(file, tree, list(iter_nodes(tree, lines))) for file, tree, lines in trees]
    nodes = [node for *_source, inside in parts for node in inside]
    if any(isinstance(node, ast.Attribute) and node.attr == "training" for node in nodes):
        return
    if len(parts) > 1 and any(isinstance(node, (ast.If, ast.IfExp)) for node in nodes):
        return
    for file, tree, inside in parts:
        for call in (node for node in inside if isinstance(node, ast.Call) and _drops_always(node)):
            if not may_be_left_out(find_function(tree, call.lineno), call):
                yield CodePlace(file, call.lineno)


def _drops_always(call: ast.Call) -> bool:
    """Return whether a call is a functional dropout that is not told the mode, with a rate that is not 0."""
    function = call.func
    if not isinstance(function, ast.Attribute) or get_last_name(function.value) not in _FUNCTIONAL:
        return False
    is_dropout = function.attr.rstrip("123d") in ("dropout", "alpha_dropout", "feature_alpha_dropout")
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    is_told = len(call.args) > 2 or not named.keys().isdisjoint(("training", None))
    rate = call.args[1] if len(call.args) > 1 else named.get("p")
    has_stars = any(isinstance(argument, ast.Starred) for argument in call.args)
    drops = rate is None or (isinstance(rate, ast.Constant) and rate.value not in (0, None))
    return is_dropout and drops and not is_told and not has_stars
