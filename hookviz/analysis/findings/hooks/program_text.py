"""Reads the recorded text of the program: where it calls a forward directly, and where it may cut a variable off."""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from hookviz.analysis.findings.parameters.cutting_code import (
    find_cutting_code,
    find_function,
    find_innermost,
    get_last_name,
    iter_file_trees,
    list_arguments,
    parse_source,
)
from hookviz.analysis.findings.parameters.places import Place
from hookviz.analysis.findings.parameters.program_functions import ProgramFunctions
from hookviz.analysis.findings.training.program_calls import find_replacement, read_line
from hookviz.support.definitions import Definition, find_edited, is_value, list_names, list_returned
from hookviz.support.messages import _, join_first
from hookviz.support.source_code import CodePlace, place_of, read_place
from hookviz.trace import Hook, SourceRow, TraceData, UnfiredRow
from hookviz.trace.traversal import list_outer_paths

FORWARD = "forward"
"""The place of code that calls the forward of a module, or takes its weight, instead of calling the module."""
PASSED = "passed"
"""The place of code that passes the forward of a module on, or keeps it, in place of the module."""
VARIABLE = "variable"
"""The place of code that can cut a tensor in a variable off."""
REPLACED = "replaced"
"""The place of code that puts another tensor where a hook was registered."""

_METHODS_OF_LEAVES = ("register_hook", "register_post_accumulate_grad_hook")
"""The methods that register a hook on a parameter."""


def find_forward_call(trace: TraceData, module: str) -> Place | None:
    """Return where the program calls the forward of a module with this name, or passes it on, if at one place only."""
    uses = [use for use in _list_forwards(trace) if "." in module or not use.text.startswith("self.")]
    own = {(use.place, use.text, use.is_call): use for use in uses if use.names_module(module)}
    if len(own) != 1:
        return None
    [use] = own.values()
    key, sentence = FORWARD, _("Your code calls {code}.forward(...) ({where}), which skips the hooks of {code}.")
    if not use.is_call:
        key = PASSED
        sentence = _("Your code passes on or keeps {code}.forward ({where}): calling that skips the hooks of {code}.")
    return Place(key, sentence.format(code=use.text, where=use.place.where), None, use.place)


def find_use_of_weights(trace: TraceData, module: str) -> Place | None:
    """Return where the program uses the weight or bias of a module with this name itself, if at one place only."""
    name, found = module.rpartition(".")[2], set(_list_computing(trace))
    own = [(place, text) for place, text in found if name and _get_last_name(text.rpartition(".")[0]) == name]
    if len(own) != 1:
        return None
    [(place, text)] = own
    sentence = _("Your code uses {code} ({where}) without a call of the module, which runs no hooks.")
    return Place(FORWARD, sentence.format(code=text, where=place.where), None, place)


@dataclass(frozen=True)
class _Forward:
    """Code that reaches the ``forward`` of an object."""

    place: CodePlace
    owner: ast.expr
    scope: ast.AST
    """The function around it."""
    is_call: bool

    @property
    def text(self) -> str:
        """The code of the object."""
        return ast.unparse(self.owner)

    def names_module(self, module: str) -> bool:
        """Whether the object may be a module: it has its last name, or a loop over what holds the module gives it."""
        _start, holder, last = ["", "", *module.split(".")][-3:]
        values, elements = _list_values(self.scope, self.owner)
        return bool(last) and (last in map(_get_last_name, values) or holder in elements)


def _list_forwards(trace: TraceData) -> Iterator[_Forward]:
    """Yield each use of a ``forward``, other than that of a base class."""
    for source, tree in iter_file_trees(trace):
        nodes = list(ast.walk(tree))
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        for node in nodes:
            is_read = isinstance(node, ast.Attribute) and node.attr == "forward" and isinstance(node.ctx, ast.Load)
            if is_read and isinstance(node, ast.Attribute) and "super" not in ast.unparse(node.value):
                place = CodePlace(source.file, node.lineno)
                yield _Forward(place, node.value, find_function(tree, node.lineno), id(node) in called)


def _list_values(scope: ast.AST, part: ast.expr) -> tuple[list[str], set[str]]:
    """List the code that a part of the program stands for, and the names of what it may be an element of.

    >>> scope = ast.parse("for block in self.blocks: block.forward(x)")
    >>> values, elements = _list_values(scope, ast.Name("block"))
    >>> values, sorted(elements)
    (['block'], ['blocks', 'self'])
    """
    values, elements = [ast.unparse(part)], set[str]()
    if isinstance(part, ast.Subscript) and not isinstance(part.slice, ast.Constant):
        elements.add(_get_last_name(ast.unparse(part.value)))
    for node in ast.walk(scope) if isinstance(part, ast.Name) else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == values[0]:
            values.append(ast.unparse(node.value))
        elif isinstance(node, (ast.For, ast.comprehension)) and values[0] in list_names(node.target):
            elements.update(re.findall(r"\w+", ast.unparse(node.iter)))
    return values, elements


def _get_last_name(text: str) -> str:
    """Return the last part of an expression that reaches a module.

    >>> _get_last_name("self.encoder"), _get_last_name("net[0]"), _get_last_name("net['head']")
    ('encoder', '0', 'head')
    """
    return re.findall(r"\w+", text)[-1] if re.search(r"\w", text) else ""


def describe_copying(trace: TraceData, original: str, used: Iterable[str]) -> str:
    """Name the code that may have copied a module, or one around it; empty if there is none.

    Args:
        original: the name of the module, or of a parameter of it.
        used: the names of what was used in its place: a line that copies that in its turn is left out.
    """
    functions, found = ProgramFunctions(trace.sources), list[str]()
    own = {*list_outer_paths(original), original} - {"self"}
    names = set(map(_get_last_name, own))
    others = {path for other in used for path in (*list_outer_paths(other), other)} - own
    for index, (source, tree) in enumerate(iter_file_trees(trace)):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and get_last_name(node.func) == "deepcopy" and node.args:
                place = CodePlace(source.file, node.lineno)
                given = functions.list_values_of((index, place.line), ast.unparse(node.args[0]))
                if any(_get_last_name(value) in names and value not in others for value in given):
                    found.append(f"{ast.unparse(node)} ({place.where})")
    return _("Code that may have made a copy: {code}.").format(code=join_first(found)) if found else ""


def find_cut_of_variable(trace: TraceData, hook: UnfiredRow) -> Place | None:
    """Return the only code between the registration of a hook and the only pass after it that can cut its tensor off.

    With several passes in the function, another one may be meant.
    """
    registered = read_place(hook.registered_at)
    if registered is None or not hook.on.isidentifier():
        return None
    lines = {(row.source, row.line) for row in trace.lines if row.pass_id is not None}
    lines = {(source, line) for source, line in lines if trace.sources[source].file == registered.file}
    if len(lines) != 1:
        return None
    index, line = lines.pop()
    code = find_cutting_code(trace.sources[index], registered.line, line)
    named = [one for one in code if re.search(rf"\b{hook.on}\b", one.text)]
    if len(named) != 1:
        return None
    sentence = _("The only code up to there that can cut {on} off: {code} ({where}).")
    place = named[0].place
    return Place(VARIABLE, sentence.format(on=hook.on, code=named[0].text, where=place.where), None, place)


def find_replaced_parameter(trace: TraceData, hook: UnfiredRow) -> Place | None:
    """Return the only line outside of an ``__init__`` that assigns what a line registered a hook on, if it names it."""
    registered = read_place(hook.registered_at)
    if registered is None:
        return None
    for _source, tree in iter_file_trees(trace, registered.file):
        owner = next(iter_registered(tree, registered.line, *_METHODS_OF_LEAVES), None)
        if owner is None:
            continue
        code = ast.unparse(owner)
        place = find_replacement(trace, code) if isinstance(owner, ast.Attribute) else None
        if place is None or place == registered or _is_of_other_class(trace, code, registered, place):
            return None
        sentence = _("It was registered on {code} ({where}), to which your code assigns another tensor ({again}).")
        text = sentence.format(code=code, where=registered.where, again=place.where)
        return Place(REPLACED, text, None, place)
    return None


def iter_registered(tree: ast.AST, line: int, *methods: str) -> Iterator[ast.expr]:
    """Yield on what a line of a syntax tree registers a hook by one of some methods."""
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno == line)
    return (one.value for one in called if isinstance(one, ast.Attribute) and one.attr in methods)


def _is_of_other_class(trace: TraceData, owner: str, one: CodePlace, other: CodePlace) -> bool:
    """Whether an attribute of ``self`` at one line is that of another class at another line."""
    is_own = owner.startswith("self.") and re.search(rf"(?<![\w.]){re.escape(owner)}\b", read_line(trace, other))
    found = _find_class(trace, other) if is_own else None
    return found is not None and (one.file != other.file or found != _find_class(trace, one))


def _find_class(trace: TraceData, place: CodePlace) -> int | None:
    """Return the first line of the innermost class around a line; None if there is none."""
    trees = (tree for _source, tree in iter_file_trees(trace, place.file))
    around = (find_innermost(tree, (ast.ClassDef,), place.line) for tree in trees)
    return next((one.lineno for one in around if one is not None), None)


def _list_computing(trace: TraceData) -> Iterator[tuple[CodePlace, str]]:
    """Yield line and text of each weight and bias with which code outside of an ``__init__`` computes something."""
    waiting: list[tuple[SourceRow, ast.AST]] = list(iter_file_trees(trace))
    while waiting:
        source, node = waiting.pop()
        is_building = isinstance(node, ast.FunctionDef) and node.name == "__init__"
        waiting += [] if is_building else [(source, child) for child in ast.iter_child_nodes(node)]
        parts = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        if isinstance(node, ast.Call) and len(node.args) + len(node.keywords) > 1:
            parts = list_arguments(node)
        used = [part for part in parts if isinstance(part, ast.Attribute) and part.attr in ("weight", "bias")]
        if used:
            yield CodePlace(source.file, used[0].lineno), ast.unparse(used[0])


def find_edit_in_place(hook: Hook) -> CodePlace | None:
    """Return the line in the function of a hook that edits an argument in place, if there is one such line."""
    tree = parse_source(hook.source or "")
    names = list_argument_names(tree)
    nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.stmt, ast.expr)))
    return _get_only_place(hook, (node for node in nodes if _get_edited_name(node) in names))


def _get_only_place(hook: Hook, nodes: Iterable[ast.stmt | ast.expr]) -> CodePlace | None:
    """Return the line of some parts of the function of a hook; None if they are in several lines, or it has no line."""
    places = {place_of(node, hook) for node in nodes}
    return places.pop() if len(places) == 1 and hook.line is not None else None


def list_argument_names(tree: ast.AST, given: Collection[str] | None = None) -> set[str]:
    """List the arguments of a function, or ``given``, and the variables that stand for one of them or an item of it."""
    every = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)} - {"self"}
    names = every if given is None else set(given)
    for node in ast.walk(tree):
        value = node.iter if isinstance(node, ast.For) else node.value if isinstance(node, ast.Assign) else None
        while isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.Name) and value.id in names:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
            names.update(*map(list_names, targets))
    return names


def parse_hook(hook: Hook) -> Definition | None:
    """Parse the function of a hook; None if its text is not known."""
    nodes = ast.walk(parse_source(hook.source or ""))
    return next((node for node in nodes if isinstance(node, Definition)), None)


def list_given(hook: Hook) -> list[str]:
    """List the parameters of a hook that PyTorch gives: not the object of a method, and none with a default."""
    function = parse_hook(hook)
    arguments = [*function.args.posonlyargs, *function.args.args] if function else []
    defaults = len(function.args.defaults) if function else 0
    given = arguments[: len(arguments) - defaults]
    return [argument.arg for argument in given if argument.arg not in ("self", "cls")]


def find_return(hook: Hook) -> CodePlace | None:
    """Return the line in the function of a hook that returns a value, if there is one such line."""
    function = parse_hook(hook)
    if function is None or isinstance(function, ast.Lambda):
        return None
    return _get_only_place(hook, (value for value in list_returned(function) if value is not None and is_value(value)))


def _get_edited_name(node: ast.stmt | ast.expr) -> str | None:
    """Return the variable that a piece of code edits in place, or an item of it."""
    edited = find_edited(node)
    while isinstance(edited, ast.Subscript):
        edited = edited.value
    return edited.id if isinstance(edited, ast.Name) else None


def find_hook_line(hook: Hook, where: str | None = None, role: str = "registered") -> tuple[CodePlace | None, str]:
    """Return the line and role of a place; those of the function of the hook if the place is not known."""
    place = read_place(where)
    if place is not None:
        return place, role
    return None if hook.line is None else CodePlace(hook.file, hook.line), "hook"


def find_returning_line(hook: Hook, where: str | None = None) -> tuple[CodePlace | None, str]:
    """Return the line and role of the line of a hook that returns a value; without one, as ``find_hook_line``."""
    place = find_return(hook)
    return find_hook_line(hook, where) if place is None else (place, "returns")
