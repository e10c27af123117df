"""Code that can cut a graph: detach, no_grad, conversions to numbers, ops without a gradient."""

import ast
import re
from collections.abc import Collection, Container, Iterator, Mapping
from functools import lru_cache
from textwrap import dedent
from typing import NamedTuple

CUTTING_METHODS = frozenset({
    "detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "long", "int", "bool", "nonzero",
    "requires_grad_", "sign", "multinomial", "bernoulli", "sample",
})  # fmt: skip
"""Methods and functions whose result has no history, or none that leads back."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
CUTTING_FUNCTIONS = frozenset({"tensor", "as_tensor", "from_numpy", "Parameter", "no_grad", "inference_mode"})
KNOWN_ROOTS = frozenset({"torch", "F", "nn", "functional", "math", "np", "numpy", "optim"})
"""The names of libraries whose functions cut only if they are named here."""
KNOWN_CALLS = frozenset({
    "abs", "append", "backward", "bool", "chunk", "clamp", "clone", "contiguous", "dict", "dim", "double", "enumerate",
    "eval", "exp", "expand", "extend", "flatten", "float", "format", "forward", "int", "isinstance", "items", "keys",
    "len", "list", "log", "matmul", "max", "mean", "min", "mul", "norm", "permute", "pow", "print", "range", "relu",
    "repeat", "register_hook", "reshape", "set", "sigmoid", "size", "softmax", "split", "sqrt", "squeeze", "step",
    "str", "sum", "super", "t", "tanh", "to", "train", "transpose", "tuple", "unsqueeze", "update", "values", "view",
    "zero_grad", "zip",
})  # fmt: skip
"""Functions and methods that cut nothing."""


class CuttingCode(NamedTuple):
    """A piece of code that can cut."""

    line: int
    text: str


def find_cutting_code(text: str, first_line: int, start: int, end: int | None) -> list[CuttingCode]:
    """Find the code between two lines that can cut, as far as the function around the first of them goes.

    Args:
        text: the source, whose first line has the number ``first_line``.
        start: the line after which, or in which, the graph is cut.
        end: the line before which, or in which, it is cut. If it does not come after ``start``, both are taken to lie
            in one loop, of which any line may run in between.

    >>> text = '''def forward(self, x):
    ...     h = self.a(x)
    ...     h = h.detach()
    ...     return self.b(h)
    ... '''
    >>> find_cutting_code(text, 1, 2, 4)
    [CuttingCode(line=3, text='h.detach()')]
    """
    tree = parse_source(text)
    shift = first_line - 1
    return [] if tree is None else _list_code(tree, shift, _find_range(tree, start - shift, end and end - shift))


def find_cutting_code_around(text: str, first_line: int, line: int) -> list[CuttingCode]:
    """Find the code that can cut in the function around a line.

    >>> text = '''def forward(self, x):
    ...     h = x.detach()
    ...     return self.a(h)
    ... '''
    >>> find_cutting_code_around(text, 1, 3)
    [CuttingCode(line=2, text='x.detach()')]
    """
    tree = parse_source(text)
    if tree is None:
        return []
    shift = first_line - 1
    function = _find_innermost(tree, _FUNCTIONS, line - shift, line - shift)
    return [] if function is None else _list_code(tree, shift, function)


def find_other_call(
    text: str, first_line: int, start: int, end: int | None, modules: Mapping[int, Collection[str]]
) -> str:
    """Return a function that code between two lines calls and that may cut where it is defined; empty if there is none.

    ``modules`` maps lines to the names of the modules that were called there: what these calls do was recorded.

    >>> [find_other_call(text, 1, 1, None, {1: {"net"}}) for text in ("y = pool.query(net(x))", "y = net(x).detach()")]
    ['pool.query', '']
    """
    tree = parse_source(text)
    if tree is None:
        return ""
    shift = first_line - 1
    first, last = _find_range(tree, start - shift, end and end - shift)
    names: dict[int, list[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and first <= node.lineno <= last:
            names.setdefault(node.lineno, []).append(ast.unparse(node.func))
    unknown = (name for line, called in sorted(names.items()) for name in _list_unknown(called, modules, line + shift))
    return next(unknown, "")


def _list_unknown(called: list[str], modules: Mapping[int, Collection[str]], line: int) -> list[str]:
    """List the functions that a line calls beside modules; a loop may call these by another name."""
    known = {name for names in modules.values() for name in names}
    unknown = [name for name in called if not _is_known(name, known)]
    last_names = {re.findall(r"\w+", name)[-1] for name in called if re.search(r"\w", name)}
    is_module = any(name not in last_names for name in modules.get(line, ()))
    return unknown[1:] if is_module else unknown


def _is_known(function: str, known: Container[str]) -> bool:
    names = re.findall(r"\w+", function)
    last = names[-1] if names else ""
    is_followed = last in known or last in KNOWN_CALLS or last in CUTTING_METHODS or last in CUTTING_FUNCTIONS
    return is_followed or (bool(names) and names[0] in KNOWN_ROOTS)


@lru_cache(maxsize=16)
def parse_source(text: str) -> ast.Module | None:
    """Parse the text of a function or of a file; None if that fails."""
    try:
        return ast.parse(dedent(text))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _list_code(tree: ast.AST, shift: int, lines: tuple[int, int]) -> list[CuttingCode]:
    found = [CuttingCode(node.lineno, ast.unparse(node)) for node in _cutting_nodes(tree)]
    return sorted({code._replace(line=code.line + shift) for code in found if lines[0] <= code.line <= lines[1]})


def _cutting_nodes(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CUTTING_METHODS or name in CUTTING_FUNCTIONS:
                yield node
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            yield node


def _find_range(tree: ast.AST, start: int, end: int | None) -> tuple[int, int]:
    """Return the first and the last line that may run between two lines, as far as the function of the first one."""
    function = _find_innermost(tree, _FUNCTIONS, start, start)
    if end is None or function != _find_innermost(tree, _FUNCTIONS, end, end):
        return (start, max(_list_end_lines(tree), default=start) if function is None else function[1])
    loop = _find_innermost(tree, (ast.For, ast.AsyncFor, ast.While), end, start) if end <= start else None
    return (start, end) if loop is None else loop


def _find_innermost(tree: ast.AST, kinds: tuple[type[ast.stmt], ...], first: int, last: int) -> tuple[int, int] | None:
    """Return the lines of the innermost statement of some kinds around the lines from ``first`` to ``last``."""
    statements = [node for node in ast.walk(tree) if isinstance(node, kinds)]
    spans = [(node.lineno, node.end_lineno or node.lineno) for node in statements]
    return max((span for span in spans if span[0] <= first and last <= span[1]), default=None)


def _list_end_lines(tree: ast.AST) -> list[int]:
    return [getattr(node, "end_lineno", None) or 0 for node in ast.walk(tree)]
