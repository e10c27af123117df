"""The TypeScript types of what travels between Python and the browser, made from ``hookviz/player/payload.py``.

``python -m tools.payload_types`` writes ``hookviz/player/browser/payload.d.ts``; a test holds it to its source.
"""

import ast
import sys
import types
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from hookviz.player import payload
from hookviz.support.messages.text import Message

SOURCE = Path(payload.__file__)
TARGET = SOURCE.parent / "browser" / "payload.d.ts"
HEAD = """// Made from hookviz/player/payload.py by `make bundle`: change that file, not this one.

/** A text that reads the same in every language, or a key with its arguments: named ones, or the items of a list. */
export type Message = string | [key: string, parts: { [name: string]: Message } | Message[]];
"""
ALIASES = ("Norm", "Chunk")
"""Types without fields that the JavaScript names, too."""
_PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", Any: "unknown"}


def main() -> int:
    """Write the file."""
    TARGET.write_text(typescript(), encoding="utf-8")
    return 0


def typescript() -> str:
    """All types, in the order of the Python file."""
    aliases = [f"export type {name} = {_written(getattr(payload, name))};" for name in ALIASES]
    kinds = [kind for kind in vars(payload).values() if is_typeddict(kind) and kind.__module__ == payload.__name__]
    return "\n".join([HEAD, *aliases, "", *map(_interface, kinds)])


def _interface(kind: Any) -> str:
    """One TypedDict as an interface."""
    about = _about_fields()
    lines = [f"/** {kind.__doc__} */", f"export interface {kind.__name__} {{"]
    for name, hint in get_type_hints(kind, include_extras=True).items():
        optional = name in kind.__optional_keys__
        if (kind.__name__, name) in about:
            lines.append(f"  /** {about[kind.__name__, name]} */")
        lines.append(f"  {name}{'?' if optional else ''}: {_written(hint)};")
    return "\n".join([*lines, "}", ""])


def _written(hint: Any) -> str:
    """A type in TypeScript."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint == Message:
        return "Message"
    if is_typeddict(hint):
        return str(hint.__name__)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is NotRequired:
        return _written(parts[0])
    if origin is Literal:
        return " | ".join(f'"{part}"' for part in parts)
    if origin is list:
        return f"{_bracketed(parts[0])}[]"
    if origin is tuple:
        return f"[{', '.join(map(_written, parts))}]"
    if origin is dict:
        return f"{{ [key: string]: {_written(parts[1])} }}"
    if origin in (Union, types.UnionType):
        return _union(parts)
    raise TypeError(f"There is no TypeScript for {hint}: add it to tools/payload_types.py.")


def _bracketed(hint: Any) -> str:
    written = _written(hint)
    return f"({written})" if " | " in written else written


def _union(parts: tuple[Any, ...]) -> str:
    """Alternatives; a union that holds all of ``Message`` holds it by its name."""
    message = set(get_args(Message))
    if message <= set(parts):
        parts = (Message, *(part for part in parts if part not in message))
    return " | ".join(dict.fromkeys(map(_written, parts)))


@cache
def _about_fields() -> dict[tuple[str, str], str]:
    """(TypedDict, field) → the docstring of the field, where there is one."""
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    found = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, about in pairwise(kind.body):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(about, ast.Expr):
                found[kind.name, field.target.id] = str(ast.literal_eval(about.value))
    return found


if __name__ == "__main__":
    sys.exit(main())
