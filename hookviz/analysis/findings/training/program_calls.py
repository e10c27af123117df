"""Reads the recorded text of the program: the calls that make optimizers and schedulers, and what sets parameters."""

import ast
import re
from collections.abc import Callable, Container
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.parameters.cutting_code import (
    find_function,
    get_last_name,
    iter_file_trees,
    list_arguments,
)
from hookviz.analysis.findings.training.control_flow import Execution
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import TraceData, UpdateRow
from hookviz.trace.traversal import list_outer_paths

_DRAWING = frozenset({
    "kaiming_normal_", "kaiming_uniform_", "normal_", "orthogonal_", "trunc_normal_", "uniform_", "xavier_normal_",
    "xavier_uniform_",
})  # fmt: skip
"""Functions that draw the numbers of weights."""


def read_code(trace: TraceData, place: CodePlace) -> str:
    """Return the code in a line of the program, without the space and the comment around it."""
    return read_line(trace, place).partition("  #")[0].strip()


def read_line(trace: TraceData, place: CodePlace) -> str:
    """Return a line of the program; empty if it is not known."""
    for source in trace.sources:
        lines, number = source.text.splitlines(), place.line - source.line
        if source.file == place.file and 0 <= number < len(lines):
            return lines[number]
    return ""


def add_update_line(finding: Finding, row: UpdateRow) -> Finding:
    """Add the line at which an optimizer took a step."""
    return put_line(finding, read_place(row.taken_at), "update")


def list_pass_lines(trace: TraceData) -> dict[int, CodePlace]:
    """Map passes to the lines that start them, where these are known."""
    return {
        row.pass_id: CodePlace(trace.sources[row.source].file, row.line)
        for row in trace.lines
        if row.pass_id is not None
    }


class RateSetter(NamedTuple):
    """What sets learning rates in the program: a line that does it itself, or a scheduler."""

    place: CodePlace
    """The line that sets the rate, or makes the scheduler."""
    is_scheduler: bool


def find_rate_setter(trace: TraceData, optimizer: int) -> RateSetter | None:
    """Return the only line that sets the learning rate of a group, or the only scheduler; None if unclear.

    Of several optimizers, a scheduler has to be given this one by name; a line that sets rates names none.
    """
    setters, makers = _find_lines(trace, _sets_rate), _find_lines(trace, _makes_scheduler)
    place = _get_only(setters | makers)
    if place is None or (len(trace.optimizers) > 1 and place not in _list_makers_of(trace, optimizer)):
        return None
    return RateSetter(place, is_scheduler=bool(makers))


def _list_makers_of(trace: TraceData, optimizer: int) -> set[CodePlace]:
    """List the lines that make a scheduler for an optimizer."""
    return _find_lines(trace, partial(_makes_scheduler_for, trace.optimizers[optimizer].name.rpartition(".")[2]))


def _makes_scheduler_for(optimizer: str, node: ast.AST) -> bool:
    given = list_arguments(node) if isinstance(node, ast.Call) else []
    return _makes_scheduler(node) and optimizer in map(get_last_name, given)


def _sets_rate(node: ast.AST) -> bool:
    """Return whether code sets ``group["lr"]``."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AugAssign) else []
    return any(
        isinstance(one, ast.Subscript) and isinstance(one.slice, ast.Constant) and one.slice.value == "lr"
        for one in targets
    )


def _makes_scheduler(node: ast.AST) -> bool:
    """Return whether code makes a scheduler of learning rates, all of whose names in torch end alike."""
    name = get_last_name(node.func) if isinstance(node, ast.Call) else ""
    return name.endswith(("LR", "Scheduler", "WarmRestarts")) or name == "ReduceLROnPlateau"


def _calls(names: Container[str], node: ast.AST) -> bool:
    """Return whether code calls a function or method with one of some names."""
    return isinstance(node, ast.Call) and get_last_name(node.func) in names


def find_optimizer_call(trace: TraceData, kind: str) -> CodePlace | None:
    """Return the only line that makes an optimizer of a class; None if there are several, or none."""
    return _get_only(_find_lines(trace, partial(_calls, (kind,))))


def find_evaluation(trace: TraceData, module: str) -> CodePlace | None:
    """Return the only line that switches the model of a module to evaluation mode; None if there are several, or none.

    A line that names another model of the trace, or another attribute, does not count.
    """
    names = {row.name for row in trace.modules}
    models = {name for name in names if names.isdisjoint(list_outer_paths(name))}
    own = next((model for model in models if f"{module}.".startswith(f"{model}.")), module)
    others = {name.rpartition(".")[2] for name in models - {own}}
    return _get_only(_find_lines(trace, partial(_evaluates, own.rpartition(".")[2], others)))


def _evaluates(model: str, others: set[str], node: ast.AST) -> bool:
    """Return whether code calls ``eval()`` or ``train(False)`` of a model, or of a variable other than ``others``."""
    function = node.func if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or not isinstance(function, ast.Attribute):
        return False
    arguments = list_arguments(node)
    is_off = function.attr == "train" and [ast.dump(one) for one in arguments] == ["Constant(value=False)"]
    name = get_last_name(function.value)
    is_own = name == model or not (isinstance(function.value, ast.Attribute) or name in others)
    return is_own and (is_off or (function.attr == "eval" and not arguments))


def calls_step(trace: TraceData, optimizer: str) -> bool:
    """Return whether some line calls the ``step()`` of an object that has the last name of an optimizer."""
    return bool(_find_lines(trace, partial(_steps, optimizer.rpartition(".")[2])))


def _steps(name: str, node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr == "step" and get_last_name(function.value) == name


def find_clearing(trace: TraceData, row: UpdateRow) -> CodePlace | None:
    """Return the line of the only ``zero_grad()`` that runs between the line of a pass and that of the step after it.

    In a loop it may also stand after the pass and run in the round before, or stand above a step above the pass.
    """
    step, line = read_place(row.taken_at), list_pass_lines(trace).get(trace.rows[row.step].pass_id)
    if step is None or line is None or line.file != step.file:
        return None
    found = {place.line for place in _find_lines(trace, _is_clearing) if place.file == step.file}
    if step.line > line.line:
        found = {one for one in found if line.line <= one <= step.line}
    else:
        found = {one for one in found if one >= line.line or one <= step.line}
    return CodePlace(step.file, found.pop()) if len(found) == 1 else None


_is_clearing = partial(_calls, ("zero_grad",))


def find_clearing_around(trace: TraceData, place: CodePlace | None) -> CodePlace | None:
    """Return the only line that calls ``zero_grad()`` in the function around a line; None if there are several."""
    if place is None:
        return None
    found: set[CodePlace] = set()
    for source, tree in iter_file_trees(trace, place.file):
        calls = (node for node in ast.walk(find_function(tree, place.line)) if _is_clearing(node))
        found.update(CodePlace(source.file, getattr(node, "lineno", 0)) for node in calls)
    return _get_only(found)


def is_in_forward(trace: TraceData, place: CodePlace) -> bool:
    """Return whether a line of the program is in a function that is called ``forward``."""
    scopes = (find_function(tree, place.line) for _source, tree in iter_file_trees(trace, place.file))
    return any(getattr(scope, "name", "") == "forward" for scope in scopes)


def find_tensor_making(trace: TraceData, name: str) -> CodePlace | None:
    """Return the only line that assigns a tensor made to require grad, other than a parameter; None if unclear.

    ``name`` is that of the tensor, such as ``self.scale``; if it is empty, any attribute may hold it.
    """
    return _get_only(_find_lines(trace, partial(_makes_leaf, name.rpartition(".")[2])))


def _makes_leaf(name: str, node: ast.AST) -> bool:
    """Return whether code assigns the result of a call with ``requires_grad=True``, or of ``requires_grad_()``."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
        return False
    call, target = node.value, get_last_name(node.targets[0])
    is_target = target == name if name else isinstance(node.targets[0], ast.Attribute)
    is_marked = any(one.arg == "requires_grad" and ast.unparse(one.value) == "True" for one in call.keywords)
    return is_target and (is_marked or get_last_name(call.func) == "requires_grad_")


def find_replacement(trace: TraceData, name: str) -> CodePlace | None:
    """Return the only line outside of an ``__init__`` that assigns a module or parameter; None if there is none.

    ``name`` is that of the parameter; of ``net.head.weight``, ``net.head = ...`` counts as ``net.head.weight = ...``
    does. A ``weight`` or ``bias`` has to be that of an object with the last name of the module.
    """
    return _get_only(_find_replacements(trace, name))


def find_later_assignment(trace: TraceData, name: str, place: CodePlace) -> CodePlace | None:
    """Return the only line after another one in its function that assigns what a call returns to a variable.

    ``name`` is that of the variable, or of an attribute such as ``self.model``.
    """
    found: set[CodePlace] = set()
    for source, tree in iter_file_trees(trace, place.file):
        scope = find_function(tree, place.line)
        nodes = (node for node in ast.walk(scope) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call))
        own = (node for node in nodes if find_function(tree, node.lineno) is scope)
        later = (node for node in own if node.lineno > place.line and name in map(ast.unparse, node.targets))
        found.update(CodePlace(source.file, node.lineno) for node in later)
    return _get_only(found)


def is_replaced(trace: TraceData, name: str) -> bool:
    """Return whether some line outside of an ``__init__`` assigns a parameter, or a module that holds it."""
    return bool(_find_replacements(trace, name))


def _find_replacements(trace: TraceData, name: str) -> set[CodePlace]:
    parts = name.split(".")
    for owner, attribute in reversed([*pairwise(parts)]):
        owners = owner if attribute in ("weight", "bias") else ""
        found = _find_lines(trace, partial(_assigns, attribute, owner=owners), outside_of="__init__")
        if found:
            return found
    return set()


def find_mark(trace: TraceData, mark: str) -> CodePlace | None:
    """Return the only line that sets an attribute such as ``encoder.requires_grad`` to False; None if it is unclear."""
    return _get_only(_find_lines(trace, partial(_sets_false, mark)))


def _sets_false(mark: str, node: ast.AST) -> bool:
    """Return whether code sets an attribute to False, of an object with the last name that ``mark`` has, if any."""
    owner, _dot, attribute = mark.rpartition(".")
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if not isinstance(target, ast.Attribute) or target.attr != attribute or not isinstance(node, ast.Assign):
        return False
    return ast.unparse(node.value) == "False" and _has_last_name(target.value, owner.rpartition(".")[2])


class FreezingCode(NamedTuple):
    """Code that may have frozen parameters."""

    pieces: list[tuple[CodePlace, str]]
    """Each with its line."""
    has_run: bool
    """Whether it ran for sure."""


def find_freezing(trace: TraceData, *, during_training: bool) -> FreezingCode:
    """Find the code that may have frozen parameters: of some of it, that which ran for sure.

    ``during_training`` leaves out what runs only before the first pass. Beside code that sets a flag to False, what
    computes one is left out.
    """
    execution, every = Execution(trace), enumerate(iter_file_trees(trace))
    found = [
        (index, node, CodePlace(source.file, node.lineno))
        for index, (source, tree) in every
        for node in ast.walk(tree)
        if isinstance(node, (ast.Call, ast.Assign)) and _read_flag(node)
    ]
    found = [one for one in found if execution.may_have_run(one[2])]
    if during_training:
        found = [one for one in found if not execution.comes_before_passes((one[0], one[2].line))]
    off = [one for one in found if _read_flag(one[1]) == "False"] or found
    ran = [one for one in off if execution.has_run(one[0], one[1])]
    return FreezingCode([(place, ast.unparse(node)) for _index, node, place in ran or off], bool(ran))


def _read_flag(node: ast.Call | ast.Assign) -> str:
    """Return the code of the value that code gives to ``requires_grad``; empty if it gives none, or True."""
    text = ""
    if isinstance(node, ast.Call) and get_last_name(node.func) == "requires_grad_":
        values = list_arguments(node)
        text = ast.unparse(values[0]) if values and not _is_of_new_object(node.func) else ""
    elif isinstance(node, ast.Assign) and get_last_name(node.targets[0]) == "requires_grad":
        text = ast.unparse(node.value)
    return "" if text == "True" else text


def _is_of_new_object(method: ast.expr) -> bool:
    """Return whether code reads a method of what it has just made, as that of ``Linear(2, 2)``."""
    maker = method.value if isinstance(method, ast.Attribute) else None
    return isinstance(maker, ast.Call) and get_last_name(maker.func)[:1].isupper()


def find_zeroing(trace: TraceData, name: str) -> CodePlace | None:
    """Return the only line that sets a parameter to 0, as ``self.bias = Parameter(torch.zeros(3))`` does."""
    return _get_only(_find_lines(trace, partial(_zeroes, name.rpartition(".")[2])))


def find_initialisation(trace: TraceData) -> CodePlace | None:
    """Return the only line that draws weights anew, as ``nn.init.normal_(layer.weight)`` does."""
    return _get_only(_find_lines(trace, partial(_calls, _DRAWING)))


def _zeroes(attribute: str, node: ast.AST) -> bool:
    """Return whether code assigns zeros to an attribute, or sets its numbers to 0."""
    if isinstance(node, ast.Assign) and _assigns(attribute, node):
        calls = (part for part in ast.walk(node.value) if isinstance(part, ast.Call))
        return any(get_last_name(call.func) in ("zeros", "zeros_like") for call in calls)
    if not isinstance(node, ast.Call):
        return False
    function, values = get_last_name(node.func), [one.value for one in node.args if isinstance(one, ast.Constant)]
    is_filled = function in ("zeros_", "zero_") or (function in ("constant_", "fill_") and values == [0])
    return is_filled and any(_reads(attribute, one) for one in (node.func, *node.args))


def _reads(attribute: str, part: ast.expr) -> bool:
    """Return whether code reads an attribute, or something of it, such as ``layer.weight.data``."""
    return any(isinstance(one, ast.Attribute) and one.attr == attribute for one in ast.walk(part))


def _assigns(attribute: str, node: ast.AST, owner: str = "") -> bool:
    """Return whether code assigns an attribute, or the element of a container that an index such as ``2`` names.

    If an ``owner`` is given, the attribute has to be one of an object with this last name.
    """
    for target in node.targets if isinstance(node, ast.Assign) else ():
        if isinstance(target, ast.Attribute) and target.attr == attribute and _has_last_name(target.value, owner):
            return True
        index = target.slice if isinstance(target, ast.Subscript) else None
        if isinstance(index, ast.Constant) and str(index.value) == attribute:
            return True
    return False


def _has_last_name(part: ast.expr, name: str) -> bool:
    """Return whether code reaches an object by an attribute or index of this name, if it is to have one."""
    return not name or re.findall(r"\w+", ast.unparse(part))[-1:] == [name]


def _find_lines(trace: TraceData, is_wanted: Callable[[ast.AST], bool], *, outside_of: str = "") -> set[CodePlace]:
    """Return the lines of the wanted nodes, without those in functions of a name."""
    found: set[CodePlace] = set()
    for source, tree in iter_file_trees(trace):
        nodes = list(ast.walk(tree))
        skipped = {
            id(inner)
            for node in nodes
            if isinstance(node, ast.FunctionDef) and node.name == outside_of
            for inner in ast.walk(node)
        }
        wanted = (node for node in nodes if id(node) not in skipped and is_wanted(node))
        found.update(CodePlace(source.file, getattr(node, "lineno", 0)) for node in wanted)
    return found


def _get_only(places: set[CodePlace]) -> CodePlace | None:
    return next(iter(places)) if len(places) == 1 else None
