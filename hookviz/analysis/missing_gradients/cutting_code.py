"""Code that can end the way of a gradient: detach, no_grad, conversions to numbers, ops without a gradient."""

import ast
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

CUTTING_METHODS = frozenset({
    "detach", "detach_", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "long", "int", "bool", "nonzero",
    "requires_grad_", "sign", "multinomial", "bernoulli",
})  # fmt: skip
"""Methods and functions whose result has no history, or none that leads back."""
CUTTING_FUNCTIONS = frozenset({"tensor", "as_tensor", "from_numpy", "Parameter", "no_grad", "inference_mode"})


class CuttingCode(NamedTuple):
    """A piece of code that can cut."""

    line: int
    text: str


def find_cutting_code(text: str, first_line: int, start: int, end: int | None) -> list[CuttingCode]:
    """Find the code between two lines that can cut; without ``end``, up to the end of the function around ``start``.

    Args:
        text: the source, whose first line has the number ``first_line``.
        start: the line after which, or in which, the way ends.
        end: the line before which, or in which, it ends.

    >>> text = '''def forward(self, x):
    ...     h = self.a(x)
    ...     h = h.detach()
    ...     return self.b(h)
    ... '''
    >>> find_cutting_code(text, 1, 2, 4)
    [CuttingCode(line=3, text='h.detach()')]
    """
    try:
        tree = ast.parse(dedent(text))
    except (SyntaxError, ValueError, RecursionError):
        return []
    shift = first_line - 1
    last = end if end is not None else _end_of_function(tree, start - shift) + shift
    found = [CuttingCode(node.lineno + shift, ast.unparse(node)) for node in _cutting_nodes(tree)]
    return sorted({code for code in found if start <= code.line <= last})


def _cutting_nodes(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in CUTTING_METHODS or name in CUTTING_FUNCTIONS:
                yield node
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            yield node


def _end_of_function(tree: ast.AST, line: int) -> int:
    """Return the last line of the innermost function around ``line``, or of the whole text."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or node.lineno)]
    if around:
        innermost = max(around, key=lambda node: node.lineno)
        return innermost.end_lineno or innermost.lineno
    return max((getattr(node, "end_lineno", None) or 0 for node in ast.walk(tree)), default=line)
