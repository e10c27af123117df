"""Find the formula of a node: our readings in ``formulas.json``, and the texts in PyTorch's ``derivatives.yaml``.

A reading is a formula rewritten as a Python expression that hookviz can evaluate and show.
"""

import ast
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

COMPUTED_NAMES = frozenset({"grad", "grads", "slot", "first", "length", "pi"})
"""Names in formulas that do not stand for a value saved by the node."""
_ENTRY = re.compile(r"^- name: +([\w.]+)\(.*$", re.MULTILINE)
_FIELD = re.compile(r"\s+(\w+(?:, \w+)*):(?: +(.*))?$")
_SAVED_NAMES = {"shape": "self_sym_sizes"}
"""Name in formulas → the name of the saved value, if it is a different one."""


class Formula(NamedTuple):
    """The reading for one input of an op, and the entry of ``derivatives.yaml`` from which it comes."""

    text: str
    """The reading: an expression in torch's terms."""
    entry: str | None
    """The entry, such as ``mul.Tensor``; None for a node that is hand-written in torch."""
    key: str
    """The input: ``self``, ``other``, …"""
    wordings: tuple[str, ...]
    """The entry's texts for this input, in the releases of torch with which the reading was compared."""

    @property
    def tree(self) -> ast.expr:
        """The syntax tree of the expression."""
        return parse_formula(self.text)

    @property
    def source(self) -> str | None:
        """The entry's text in the installed torch; None if it has no such file or entry."""
        return None if self.entry is None else parse_entry(load_derivatives().get(self.entry, "")).get(self.key)

    @property
    def is_installed(self) -> bool:
        """Whether the text in the installed torch is one for which this reading was made."""
        return " ".join((self.source or "").split()) in self.wordings


@cache
def parse_formula(text: str) -> ast.expr:
    """Parse an expression into a syntax tree, which is never run as Python."""
    return ast.parse(text, mode="eval").body


@cache
def _load_formulas() -> Mapping[str, Any]:
    text = files(__package__).joinpath("formulas.json").read_text(encoding="utf-8")
    formulas: dict[str, Any] = json.loads(text)
    return formulas


def list_ops() -> list[str]:
    """List the ops for which there are formulas.

    >>> "MulBackward0" in list_ops()
    True
    """
    return list(_load_formulas())


def find_formula(op: str, slot: int) -> Formula | None:
    """Find the formula for the input ``slot`` of ``op`` in the installed torch; None if ``formulas.json`` has none.

    >>> find_formula("MulBackward0", 0).text
    'grad * conj(other)'
    """
    return next(iter(find_formulas(op, slot)), None)


def find_formulas(op: str, slot: int) -> list[Formula]:
    """Find the formulas in all releases of torch, which may differ; the one of the installed release comes first.

    >>> sorted(formula.text for formula in find_formulas("ClampMinBackward0", 0))
    ['where(self > min, grad, 0)', 'where(self >= min, grad, 0)']
    """
    formulas = _read_formulas(op, slot)
    return sorted(formulas, key=lambda formula: not formula.is_installed) if len(formulas) > 1 else list(formulas)


@cache
def _read_formulas(op: str, slot: int) -> tuple[Formula, ...]:
    op_row = _load_formulas().get(op, {"slots": {}})
    slots = list(op_row["slots"].items())
    if not slots or (not op_row.get("list") and slot >= len(slots)):
        return ()
    key, row = slots[0 if op_row.get("list") else slot]
    return tuple(Formula(text, op_row["entry"], key, tuple(wordings)) for text, *wordings in _list_readings(row))


def is_reading(text: str, op: str, slot: int) -> bool:
    """Whether ``text`` is our reading for the input ``slot`` of ``op`` in some release of torch.

    >>> is_reading("grad * conj(other)", "MulBackward0", 0), is_reading("grad * 2", "MulBackward0", 0)
    (True, False)
    """
    return any(text == formula.text for formula in _read_formulas(op, slot))


def _list_readings(row: list[Any]) -> list[list[str]]:
    """[reading, text, …] for each distinct formula among the releases of torch; most inputs have one."""
    return row if isinstance(row[0], list) else [row]


def has_output_per_input(op: str) -> bool:
    """Whether ``op`` has an output for each input, so that each input uses the gradient of its own output."""
    return bool(_load_formulas()[op].get("each"))


@cache
def required_names(op: str) -> tuple[str, ...]:
    """The names of the saved values in the formulas of ``op``, without torch's prefix ``_saved_``.

    >>> required_names("MulBackward0"), required_names("NoSuchBackward0")
    (('other', 'self'), ())
    """
    slots = _load_formulas().get(op, {}).get("slots", {}).values()
    texts = [text for row in slots for text, *_ in _list_readings(row)]
    names = {name for text in texts for name in names_of(text)}
    return tuple(sorted(_SAVED_NAMES.get(name, name) for name in names - COMPUTED_NAMES))


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
