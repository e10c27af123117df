"""Which formula belongs to which node: our readings, and the text of PyTorch's own that each is a reading of."""

import ast
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

COMPUTED = frozenset({"grad", "grads", "slot", "first", "length", "pi"})
"""Names in formulas that are not saved by a node."""
_ENTRY = re.compile(r"^- name: +([\w.]+)\(.*$", re.MULTILINE)
_FIELD = re.compile(r"\s+(\w+(?:, \w+)*):(?: +(.*))?$")
_SHORT = {"shape": "self_sym_sizes"}
"""Names in formulas that stand for a saved value with a longer name."""


class Formula(NamedTuple):
    """What one input of an op gets, and the entry in ``derivatives.yaml`` that this is a reading of."""

    text: str
    """An expression in torch's terms."""
    entry: str | None
    """``mul.Tensor``; None for a node that torch wrote by hand."""
    key: str
    """The input: ``self``, ``other``, …"""
    wordings: tuple[str, ...]
    """The entry's formula for this input, as the releases of torch word it that the reading was compared with."""

    @property
    def tree(self) -> ast.expr:
        """The expression, parsed."""
        return parsed(self.text)

    @property
    def source(self) -> str | None:
        """The entry's formula in the torch that is installed; None where it has no such file or entry."""
        return None if self.entry is None else fields(derivatives().get(self.entry, "")).get(self.key)

    @property
    def installed(self) -> bool:
        """Whether the torch that is installed has a wording that this is a reading of."""
        return " ".join((self.source or "").split()) in self.wordings


@cache
def parsed(text: str) -> ast.expr:
    """An expression as a tree; it is never run as Python."""
    return ast.parse(text, mode="eval").body


@cache
def _table() -> Mapping[str, Any]:
    text = files(__package__).joinpath("formulas.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def ops() -> list[str]:
    """The ops that have an entry.

    >>> "MulBackward0" in ops()
    True
    """
    return list(_table())


def formula(op: str, slot: int) -> Formula | None:
    """What the input in ``slot`` of ``op`` gets in the torch that is installed; None where nobody wrote it down.

    >>> formula("MulBackward0", 0).text
    'grad * conj(other)'
    """
    return next(iter(formulas(op, slot)), None)


def formulas(op: str, slot: int) -> list[Formula]:
    """As ``formula``; where releases of torch compute different things, that of the installed one comes first.

    >>> sorted(found.text for found in formulas("ClampMinBackward0", 0))
    ['where(self > min, grad, 0)', 'where(self >= min, grad, 0)']
    """
    found = _formulas(op, slot)
    return sorted(found, key=lambda one: not one.installed) if len(found) > 1 else list(found)


@cache
def _formulas(op: str, slot: int) -> tuple[Formula, ...]:
    op_row = _table().get(op, {"slots": {}})
    slots = list(op_row["slots"].items())
    if not slots or (not op_row.get("list") and slot >= len(slots)):
        return ()
    key, row = slots[0 if op_row.get("list") else slot]
    return tuple(Formula(text, op_row["entry"], key, tuple(wordings)) for text, *wordings in _readings(row))


def is_reading(text: str, op: str, slot: int) -> bool:
    """Whether ``text`` is what we know the input in ``slot`` of ``op`` to get, in some release of torch.

    >>> is_reading("grad * conj(other)", "MulBackward0", 0), is_reading("grad * 2", "MulBackward0", 0)
    (True, False)
    """
    return any(text == found.text for found in _formulas(op, slot))


def _readings(row: list[Any]) -> list[list[str]]:
    """[reading, wording, …] for each release that computes something else; most inputs have one."""
    return row if isinstance(row[0], list) else [row]


def passes_each(op: str) -> bool:
    """Whether ``op`` has as many outputs as inputs, each with its own gradient."""
    return bool(_table()[op].get("each"))


@cache
def needs(op: str) -> tuple[str, ...]:
    """The saved values that the formulas of ``op`` name, without the ``_saved_`` that torch puts before them.

    >>> needs("MulBackward0"), needs("NoSuchBackward0")
    (('other', 'self'), ())
    """
    slots = _table().get(op, {}).get("slots", {}).values()
    texts = [text for row in slots for text, *_ in _readings(row)]
    found = {name for text in texts for name in names_of(text)}
    return tuple(sorted(_SHORT.get(name, name) for name in found - COMPUTED))


@cache
def names_of(text: str) -> frozenset[str]:
    """The names of values in an expression, those of functions left out.

    >>> sorted(names_of("grad * exp(self)"))
    ['grad', 'self']
    """
    tree = parsed(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions)


def short(saved: str) -> str:
    """What a saved value is called in formulas."""
    return next((name for name, long in _SHORT.items() if long == saved), saved)


@cache
def derivatives() -> Mapping[str, str]:
    """The entries of the ``derivatives.yaml`` that comes with torch, none where it is missing.

    There are some 600, and a picture needs a few: ``fields`` reads those.
    """
    try:
        text = files("torchgen").joinpath("packaged/autograd/derivatives.yaml").read_text(encoding="utf-8")
    except (ImportError, OSError):
        return {}
    return entries(text)


def entries(text: str) -> dict[str, str]:
    """Name → what a file written as ``derivatives.yaml`` has below it; all of it, where a name comes twice."""
    found: dict[str, str] = {}
    begun = [*_ENTRY.finditer(text)]
    for name, after in zip(begun, [*begun[1:], None], strict=True):
        end = after.start() if after else None
        found[name[1]] = found.get(name[1], "") + text[name.end() : end]
    return found


@cache
def fields(entry: str) -> Mapping[str, str]:
    """The formulas of an entry; of several for one input the default one.

    No more of YAML is understood than that file needs, so that nothing has to be installed to read it.

    >>> fields(entries('- name: mul(Tensor self) -> Tensor\\n  self, other: "a ? b\\n    : c"')["mul"])
    {'self': 'a ? b : c', 'other': 'a ? b : c'}
    """
    found: dict[str, str] = {}
    keys: list[str] = []
    for line in entry.splitlines():
        if line.lstrip().startswith("#") or not line.strip():
            continue
        if field := _FIELD.match(line):
            keys = [key for key in field[1].split(", ") if key not in found]
            found.update(dict.fromkeys(keys, field[2] or ""))
        else:
            found.update({key: f"{found[key]} {line.strip()}" for key in keys})
    return {key: _plain(text) for key, text in found.items()}


def _plain(text: str) -> str:
    """A scalar of YAML without its quotes, or without the comment behind it."""
    quote = text[:1]
    if quote in ('"', "'"):
        return text[1 : text.rindex(quote)] if text.rindex(quote) else text
    return text.split(" #")[0].strip()
