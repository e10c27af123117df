"""Find updates by hand that give the name of a parameter to a new tensor, instead of changing the parameter."""

import ast
from collections.abc import Container, Iterator
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.parameters.cutting_code import find_function, get_last_name, iter_file_trees
from hookviz.analysis.findings.training.control_flow import may_be_left_out
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _, pluralize
from hookviz.support.source_code import CodePlace
from hookviz.trace import TraceData

_COMPUTING = frozenset({
    "clamp", "clamp_max", "clamp_min", "clip", "div", "masked_fill", "mul", "nan_to_num", "neg", "renorm", "sub",
})  # fmt: skip
"""Methods that make a new tensor, each with a twin that edits in place."""


class _Rebinding(NamedTuple):
    """A statement such as ``w = w - lr * w.grad``."""

    place: CodePlace
    name: str
    code: str
    is_lost: bool
    """Whether ``name`` is the variable of a loop around it, which nothing reads before its next turn."""
    may_be_left_out: bool
    """Whether a condition may have left it out."""


def find_rebound(facts: TrainingFacts) -> Iterator[Finding]:
    """Find parameters that get gradients and stay as they are, because an update binds the variable of a loop only."""
    if facts.updates or facts.lacks_passes:
        return
    lost = [found for found in _list_rebindings(facts.trace) if found.is_lost]
    still = _list_still(facts) if len(lost) == 1 and not lost[0].may_be_left_out else {}
    if not still:
        return
    names = tuple(still)
    written = sorted(step for steps in still.values() for step in steps)
    passes = tuple(sorted({facts.trace.rows[step].pass_id for step in written}))
    more = _("{on} and {count} more").format(on=names[0], count=f"{len(names) - 1:,}")
    computed = pluralize(len(passes), _("{count} pass"), _("{count} passes"))
    sentence = _("{passes} computed gradients of {on}, which kept their numbers.")
    cause = _("{code} gives the name {name} to a new tensor, and leaves the parameter as it is.")
    finding = Finding(
        written[0],
        "rebound",
        sentence.format(passes=computed, on=more if len(names) > 1 else names[0]),
        "warning",
        passes,
        cause=cause.format(code=lost[0].code, name=lost[0].name),
        advice=_advise(lost[0].name),
        parameters=names,
    )
    yield put_line(finding, lost[0].place)


def find_dropped_edits(facts: TrainingFacts) -> Iterator[Finding]:
    """Find code of a training such as ``p.grad.clamp(-1, 1)``, which makes a new tensor that nothing uses."""
    trace = facts.trace
    for index, (source, tree) in enumerate(iter_file_trees(trace)) if facts.updates else ():
        for call in _list_dropped(trace, index, tree) if ".grad." in source.text else ():
            assert isinstance(call.func, ast.Attribute)
            words = {"code": ast.unparse(call), "method": call.func.attr}
            sentence = _("{code} makes a new tensor, which nothing uses: the gradient stays as it is.").format(**words)
            advice = _("Write {method}_(...), which edits it in place.").format(**words)
            step = facts.trace.updates[0].step
            finding = Finding(step, "rebound", sentence, "warning", certainty="likely", advice=advice)
            yield put_line(finding, CodePlace(source.file, call.lineno))


def _list_dropped(trace: TraceData, source: int, tree: ast.Module) -> list[ast.Call]:
    """List the calls that make a new tensor from the gradient of a leaf, and do nothing else."""
    shown, found = tree.body[-1:], dict[ast.Call, None]()  # a notebook shows the value of the last line of a cell
    for scope in _list_scopes(trace, source, tree):
        leaves = {*trace.lookup.leaf_names.values(), *_list_loop_targets(scope)}
        for node in ast.walk(scope):
            call = node.value if isinstance(node, ast.Expr) and node not in shown else None
            if isinstance(call, ast.Call) and _drops(call, leaves) and not may_be_left_out(scope, node):
                found[call] = None
    return [*found]


def _list_loop_targets(scope: ast.AST) -> Iterator[str]:
    """Yield the variables of loops over parameters."""
    for loop in ast.walk(scope):
        if isinstance(loop, ast.For) and "param" in ast.unparse(loop.iter):
            yield from (part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name))


def _drops(value: ast.Call, leaves: Container[str]) -> bool:
    """Whether a call is that of a method of the ``.grad`` of a leaf that makes a new tensor."""
    owner = value.func.value if isinstance(value.func, ast.Attribute) else None
    owner = owner.value if isinstance(owner, ast.Attribute) and owner.attr == "data" else owner
    is_kept = any(keyword.arg == "out" for keyword in value.keywords)
    is_computing = isinstance(value.func, ast.Attribute) and value.func.attr in _COMPUTING and not is_kept
    is_gradient = isinstance(owner, ast.Attribute) and owner.attr == "grad" and ast.unparse(owner.value) in leaves
    return is_computing and is_gradient


def _list_still(facts: TrainingFacts) -> dict[str, list[int]]:
    """Return the leaves that got gradients in several passes and kept their numbers → the steps that wrote these.

    Nothing is returned if a leaf with a gradient was changed, or if the numbers of all are unknown.
    """
    names, still, values = facts.trace.lookup.leaf_names, {}, facts.leaf_values.values()
    for node, name in names.items():
        found = [one[node] for one in values if node in one]
        if any(before != found[0] for before in found):
            return {}
        if len(steps := facts.written_of.get(node, [])) > 1:
            still[name] = steps
    is_known = any(value is not None for one in values for value in one.values())
    return still if is_known else {}


def explain_rebinding(trace: TraceData, finding: Finding) -> Finding:
    """Say why ``.grad`` is None where a line raised: the same line has made the tensor in its turn before."""
    here = (
        found
        for found in _list_rebindings(trace)
        if (found.place.file, found.place.line) == (finding.file, finding.line)
    )
    rebinding = next(here, None)
    if rebinding is None:
        return finding
    rows = [row for row in trace.tensors if row.name == rebinding.name]
    if not rows or not rows[0].leaf or rows[-1].leaf:
        return finding
    text = _(
        "In its turn before, this line made {name} the result of an op: it is not a leaf any more, and a pass writes "
        "the .grad of leaves only."
    )
    return replace(finding, cause=text.format(name=rebinding.name), advice=_advise(rebinding.name))


def _advise(name: str) -> str:
    return _("Change it in place within torch.no_grad(): {name} -= ... instead of {name} = {name} - ...").format(
        name=name
    )


def _list_rebindings(trace: TraceData) -> Iterator[_Rebinding]:
    """Yield the statements that compute a new tensor from a variable and its gradient, and give it the same name.

    They lie in the functions that start passes, and in those that these call.
    """
    for index, (source, tree) in enumerate(iter_file_trees(trace)):
        for scope in _list_scopes(trace, index, tree) if ".grad" in source.text else ():
            nodes = list(ast.walk(scope))
            loops = [node for node in nodes if isinstance(node, ast.For) and isinstance(node.target, ast.Name)]
            for node in nodes:
                if isinstance(node, ast.Assign) and (name := _read_rebound(node)):
                    place = CodePlace(source.file, node.lineno)
                    is_lost = any(_is_lost(loop, node, name) for loop in loops)
                    yield _Rebinding(place, name, ast.unparse(node), is_lost, may_be_left_out(scope, node))


def _list_scopes(trace: TraceData, source: int, tree: ast.AST) -> list[ast.AST]:
    """List the functions around the lines of a text that start passes, and those that they call in any case."""
    starts = (row.line for row in trace.lines if row.source == source and row.pass_id is not None)
    around = list(dict.fromkeys(find_function(tree, line) for line in starts))
    calls = ((scope, node) for scope in around for node in ast.walk(scope) if isinstance(node, ast.Call))
    called = {get_last_name(call.func) for scope, call in calls if not may_be_left_out(scope, call)}
    return around + [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in called and node not in around
    ]


def _read_rebound(node: ast.Assign) -> str:
    """Return the variable that is assigned something computed from its own ``.grad``; empty if it is none."""
    target = node.targets[0]
    name = target.id if isinstance(target, ast.Name) and isinstance(node.value, ast.BinOp) else ""
    gradients = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Attribute) and part.attr == "grad")
    is_own = any(isinstance(owner, ast.Name) and owner.id == name for owner in gradients)
    return name if is_own and _begins_with(node.value, name) else ""


def _begins_with(value: ast.AST, name: str) -> bool:
    """Whether an expression computes with a variable itself, not with its data only."""
    while isinstance(value, ast.BinOp):
        value = value.left
    return isinstance(value, ast.Name) and value.id == name


def _is_lost(loop: ast.For, statement: ast.Assign, name: str) -> bool:
    """Whether a loop binds a variable anew in each turn, and nothing in it reads it after a statement."""
    parts = [part for node in loop.body for part in ast.walk(node)]
    later = (part for part in parts if isinstance(part, ast.Name) and part.lineno > (statement.end_lineno or 0))
    is_target = isinstance(loop.target, ast.Name) and loop.target.id == name
    return is_target and statement in parts and all(part.id != name for part in later)
