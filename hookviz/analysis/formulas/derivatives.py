"""Find the formula of a node in ``formulas.json``, which has those of PyTorch's ``derivatives.yaml`` and our readings.

A reading is a formula rewritten as a Python expression that hookviz can evaluate and show.
"""

import ast
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

_COMPUTED_NAMES = frozenset({"grad", "grads", "slot", "first", "length", "pi"})
"""Names in formulas that do not stand for a value saved by the node."""
_SAVED_NAMES = {"shape": "self_sym_sizes"}
"""Name in formulas → the name of the saved value, if it is a different one."""


class Formula(NamedTuple):
    """The formula for one input of an op."""

    text: str
    """The reading: an expression in torch's terms."""
    source: str | None
    """Its text in torch; None if torch has none."""


@cache
def parse_formula(text: str) -> ast.expr:
    """Parse an expression into a syntax tree, which is never run as Python."""
    return ast.parse(text, mode="eval").body


@cache
def load_formulas() -> Mapping[str, Any]:
    """Load our readings: op → its entry in ``derivatives.yaml`` and, for each input, a reading and torch's texts."""
    text = files(__package__).joinpath("formulas.json").read_text(encoding="utf-8")
    formulas: dict[str, Any] = json.loads(text)
    return formulas


@cache
def find_formulas(op: str, slot: int) -> tuple[Formula, ...]:
    """Find the formula for the input ``slot`` of ``op``: several if releases of torch differ, none if it is not known.

    >>> find_formulas("MulBackward0", 0)[0].text
    'grad * conj(other)'
    """
    row = load_formulas().get(op, {"slots": {}})
    slots = list(row["slots"].values())
    if not slots or (not row.get("list") and slot >= len(slots)):
        return ()
    readings = list_readings(slots[0 if row.get("list") else slot])
    return tuple(Formula(text, next(iter(sources), None)) for text, *sources in readings)


def list_readings(slot: list[Any]) -> list[list[str]]:
    """[reading, text of torch, …] for each distinct formula among the releases of torch; most inputs have one."""
    return slot if isinstance(slot[0], list) else [slot]


def has_output_per_input(op: str) -> bool:
    """Whether ``op`` has an output for each input, so that each input uses the gradient of its own output."""
    return bool(load_formulas()[op].get("each"))


@cache
def required_names(op: str) -> tuple[str, ...]:
    """The names of the saved values in the formulas of ``op``, without torch's prefix ``_saved_``.

    >>> required_names("MulBackward0"), required_names("NoSuchBackward0")
    (('other', 'self'), ())
    """
    slots = load_formulas().get(op, {}).get("slots", {}).values()
    texts = [text for row in slots for text, *_ in list_readings(row)]
    names = {name for text in texts for name in names_of(text)}
    return tuple(sorted(_SAVED_NAMES.get(name, name) for name in names - _COMPUTED_NAMES))


@cache
def names_of(text: str) -> frozenset[str]:
    """The names of values in an expression, without the names of functions.

    >>> sorted(names_of("grad * exp(self)"))
    ['grad', 'self']
    """
    tree = parse_formula(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)


def formula_name(saved_name: str) -> str:
    """The name of a saved value in formulas."""
    return next((name for name, saved in _SAVED_NAMES.items() if saved == saved_name), saved_name)
