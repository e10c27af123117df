"""Find the formula of a node: our readings in ``formulas.json``, and the texts in PyTorch's ``derivatives.yaml``.

A reading is a formula rewritten as a Python expression that hookviz can evaluate and show.
"""

import ast
import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

_COMPUTED_NAMES = frozenset({"grad", "grads", "slot", "first", "length", "pi"})
"""Names in formulas that do not stand for a value saved by the node."""
_ENTRY = re.compile(r"^- name: +([\w.]+)\(.*$", re.MULTILINE)
_FIELD = re.compile(r"\s+(\w+(?:, \w+)*):(?: +(.*))?$")
_SAVED_NAMES = {"shape": "self_sym_sizes"}
"""Name in formulas → the name of the saved value, if it is a different one."""


class Formula(NamedTuple):
    """The formula for one input of an op."""

    text: str
    """The reading: an expression in torch's terms."""
    source: str | None
    """The text in the installed torch; None if torch has none, or no file of them."""


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


@lru_cache(maxsize=1024)
def find_formula(op: str, slot: int) -> Formula | None:
    """Find the formula for the input ``slot`` of ``op``; None if ``formulas.json`` has none.

    Where releases of torch differ, it is that of the installed one.

    >>> find_formula("MulBackward0", 0).text
    'grad * conj(other)'
    """
    row = load_formulas().get(op, {"slots": {}})
    slots = list(row["slots"].items())
    if not slots or (not row.get("list") and slot >= len(slots)):
        return None
    key, readings = slots[0 if row.get("list") else slot]
    source = parse_entry(load_derivatives().get(row["entry"], "")).get(key)
    wording = " ".join((source or "").split())
    first, *others = list_readings(readings)
    text, *_ = next((reading for reading in others if wording in reading[1:]), first)
    return Formula(text, source)


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


@cache
def load_derivatives() -> Mapping[str, str]:
    """Load the entries of torch's ``derivatives.yaml`` as texts by name; empty if the file is missing.

    There are about 600 entries, and a picture needs a few: ``parse_entry`` parses a single one.
    """
    try:
        text = files("torchgen").joinpath("packaged/autograd/derivatives.yaml").read_text(encoding="utf-8")
    except (ImportError, OSError):
        return {}
    return split_entries(text)


def split_entries(text: str) -> dict[str, str]:
    """Split the text of a ``derivatives.yaml`` into its entries by name; entries of the same name are joined."""
    entries: dict[str, str] = {}
    starts = [*_ENTRY.finditer(text)]
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        end = following.start() if following else None
        entries[start[1]] = entries.get(start[1], "") + text[start.end() : end]
    return entries


@cache
def parse_entry(entry: str) -> Mapping[str, str]:
    """Parse an entry: name of an input → its formula, the default one if there are several.

    Only the part of YAML that this file uses is supported, so that no YAML library is needed.

    >>> parse_entry(split_entries('- name: mul(Tensor self) -> Tensor\\n  self, other: "a ? b\\n    : c"')["mul"])
    {'self': 'a ? b : c', 'other': 'a ? b : c'}
    """
    formulas: dict[str, str] = {}
    keys: list[str] = []
    for line in entry.splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        if field := _FIELD.match(line):
            keys = [key for key in field[1].split(", ") if key not in formulas]
            formulas.update(dict.fromkeys(keys, field[2] or ""))
        else:
            formulas.update({key: f"{formulas[key]} {line.strip()}" for key in keys})
    return {key: _unquote(text) for key, text in formulas.items()}


def _unquote(text: str) -> str:
    """Remove the quotes of a YAML scalar or, if it has no quotes, the comment behind it."""
    quote = text[:1]
    if quote in ('"', "'"):
        return text[1 : text.rindex(quote)] if text.rindex(quote) else text
    return text.split(" #")[0].strip()
