"""Read the docstrings of the fields of classes, which Python itself does not keep."""

import ast
from itertools import pairwise
from pathlib import Path


def read_field_docstrings(path: Path) -> dict[tuple[str, str], str]:
    """Return (name of a class, name of a field) → the docstring below the field, for all in a Python file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, below in pairwise(kind.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                docstrings[kind.name, field.target.id] = str(ast.literal_eval(below.value))
    return docstrings
