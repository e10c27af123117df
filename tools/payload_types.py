"""Make TypeScript types from the types of messages in ``hookviz/player/payload.py``.

``python -m tools.payload_types`` writes ``hookviz/player/browser/common/payload.d.ts``; a test checks that it is
up to date.
"""

import ast
import types
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from hookviz.player import payload

SOURCE = Path(payload.__file__)
TARGET = SOURCE.parent / "browser" / "common" / "payload.d.ts"
HEAD = """// Made from hookviz/player/payload.py by `make bundle`: change that file, not this one.
"""
ALIASES = ("Norm", "PictureText", "Chunk")
"""Types without fields that the JavaScript uses by name."""
_PRIMITIVES = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}


def main() -> None:
    """Write ``payload.d.ts``."""
    TARGET.write_text(write_types(), encoding="utf-8")


def write_types() -> str:
    """Write all types as TypeScript, in the order of the Python file."""
    aliases = [f"export type {name} = {_typescript_type(getattr(payload, name))};" for name in ALIASES]
    kinds = [kind for kind in vars(payload).values() if is_typeddict(kind) and kind.__module__ == payload.__name__]
    return "\n".join([HEAD, *aliases, "", *map(_interface, kinds)])


def _interface(kind: Any) -> str:
    """Write a TypedDict as an interface."""
    docstrings = _read_field_docstrings()
    lines = [f"/** {kind.__doc__} */", f"export interface {kind.__name__} {{"]
    for name, hint in get_type_hints(kind, include_extras=True).items():
        optional = name in kind.__optional_keys__
        if (kind.__name__, name) in docstrings:
            lines.append(f"  /** {docstrings[kind.__name__, name]} */")
        lines.append(f"  {name}{'?' if optional else ''}: {_typescript_type(hint)};")
    return "\n".join([*lines, "}", ""])


def _read_field_docstrings() -> dict[tuple[str, str], str]:
    """Return (name of a class, name of a field) → the docstring below the field, which Python itself does not keep."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    docstrings = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, below in pairwise(kind.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(below, ast.Expr):
                docstrings[kind.name, field.target.id] = str(ast.literal_eval(below.value))
    return docstrings


def _typescript_type(hint: Any) -> str:
    """Write a type in TypeScript.

    Raises:
        TypeError: there is no rule for this type.
    """
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint]
    if is_typeddict(hint):
        return str(hint.__name__)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _typescript_type(parts[0])
    if origin is Literal:
        return " | ".join(f'"{part}"' for part in parts)
    if origin is list:
        return f"{_element_type(parts[0])}[]"
    if origin is tuple:
        return f"[{', '.join(map(_typescript_type, parts))}]"
    if origin is dict:
        return f"{{ [key: string]: {_typescript_type(parts[1])} }}"
    if origin in (Union, types.UnionType):
        return " | ".join(dict.fromkeys(map(_typescript_type, parts)))
    raise TypeError(f"There is no TypeScript for {hint}: add it to tools/payload_types.py.")


def _element_type(hint: Any) -> str:
    """Write the type of a list's elements: a union needs parentheses."""
    element = _typescript_type(hint)
    return f"({element})" if " | " in element else element


if __name__ == "__main__":
    main()
