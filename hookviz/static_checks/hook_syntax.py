"""The source of a hook function as a syntax tree, with the roles of its parameters."""

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from hookviz.support.definitions import Definition, find_definition, iter_rebound
from hookviz.support.printable import make_printable
from hookviz.support.terminal_text import truncate
from hookviz.trace.hook_facts import HOOK_FACTS, MODULE_HOOK_KINDS, ON_TENSOR_KINDS

Role = Literal["gradient", "grad_input", "grad_output", "input", "output"]
TUPLES = ("grad_input", "grad_output", "input")
"""Roles of parameters that are always tuples."""

_ROLES: dict[str, Role] = {
    "grad": "gradient",
    "args": "input",
    "output": "output",
    "grad_input": "grad_input",
    "grad_output": "grad_output",
}
"""Parameter of a hook on a tensor or a module → its role."""
COUNTS = {len(names) for facts in HOOK_FACTS.values() for names in (facts.parameters, facts.with_kwargs) if names}
"""The numbers of arguments with which hooks are called."""
MAX_SHOWN_CODE = 60
"""Letters of an expression that a sentence shows."""
_KEYWORD_NAMES = ("kwargs", "kwds", "kw")
"""Names for the last argument of a forward pre-hook that was registered with_kwargs."""
_PARAMETER_NAMES = ("p", "param", "parameter", "weight", "w")
"""Names for the only argument of a post-accumulate hook, which is a parameter and not a gradient."""


@dataclass(frozen=True)
class HookSyntax:
    """A hook function as its author wrote it."""

    definition: Definition
    roles: dict[str, Role]
    """Name of a parameter → what it receives; only of parameters that keep their value in the whole function."""
    kind: str
    """The kind of hook; an empty text if it is unknown."""
    is_guess: bool
    """Whether the kind was guessed from the parameters."""

    @property
    def is_forward(self) -> bool:
        """Whether it is a forward hook."""
        return self.kind == "forward_hook"

    @property
    def worst(self) -> str:
        """The severity of what certainly fails in a hook of this kind."""
        return "warning" if self.is_guess else "error"

    def role_of(self, expression: ast.AST) -> tuple[str, Role] | None:
        """Return (name, role) of the parameter whose value ``expression`` is: ``grad``, ``args[0]``, ``grad.data``."""
        while isinstance(expression, ast.Subscript) or (
            isinstance(expression, ast.Attribute) and expression.attr == "data"
        ):
            expression = expression.value
        name = expression.id if isinstance(expression, ast.Name) else ""
        return (name, self.roles[name]) if name in self.roles else None


def read_hook(function: Callable[..., Any], kind: str | None = None) -> HookSyntax | None:
    """Read the source of a hook of a known or unknown kind; None if Python has no source of it."""
    definition, _ = find_definition(function)
    if definition is None:
        return None
    names = list_parameters(function)
    if names is None:
        return None
    known = kind or _guess_kind(names, definition)
    parameters = HOOK_FACTS[known].parameters if known in (*ON_TENSOR_KINDS, *MODULE_HOOK_KINDS) else ()
    roles = {name: _ROLES.get(parameter) for name, parameter in zip(names, parameters, strict=False)}
    if known == "forward_hook" and len(names) == 4:  # with_kwargs: (module, args, kwargs, output)
        roles = {names[1]: "input", names[3]: "output"}
    set_anew = {name.id for name in iter_rebound(definition)}
    fixed: dict[str, Role] = {name: role for name, role in roles.items() if role and name not in set_anew}
    return HookSyntax(definition, fixed, known, kind is None)


def list_parameters(function: Callable[..., Any]) -> list[str] | None:
    """List the names of the parameters that can be given by position; None if Python does not know them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [
        p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]


def _guess_kind(names: list[str], definition: Definition) -> str:
    """Guess the kind of hook from the number and the names of its parameters; an empty text if it is not clear."""
    if not names:
        return ""
    if any("dict" in name or name == "prefix" for name in names) or names[0].startswith("opt"):
        return ""  # a hook on saving, loading or the optimizer's step
    backward = any(name.startswith("g") or "grad" in name for name in names[1:])
    if len(names) == 1:
        nodes = ast.walk(definition)
        reads_grad = any(
            isinstance(n, ast.Attribute)
            and n.attr == "grad"
            and isinstance(n.value, ast.Name)
            and n.value.id == names[0]
            for n in nodes
        )
        return "" if reads_grad or names[0] in _PARAMETER_NAMES else "tensor_hook"
    if len(names) == 2:
        return "full_backward_pre_hook" if backward else "forward_pre_hook"
    if len(names) == 3:
        pre = names[2] in _KEYWORD_NAMES
        return "full_backward_hook" if backward else "forward_pre_hook" if pre else "forward_hook"
    return "forward_hook" if len(names) == 4 and not backward else ""


def show_code(node: ast.AST) -> str:
    """Return a piece of code as a sentence shows it."""
    return shorten_code(ast.unparse(node))


def shorten_code(code: str) -> str:
    """Shorten code to what a sentence shows."""
    return truncate(make_printable(code), MAX_SHOWN_CODE)
