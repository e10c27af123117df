"""A formula as a person reads it: with signs for operations, in the names of its values or with the values in it."""

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple

from hookviz.analysis.formulas.evaluation import PLAIN, Evaluator
from hookviz.support.messages import say
from hookviz.trace.values import Value, format_number

_ALL, _EITHER, _BOTH, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
"""How tightly a piece of text holds together; in a tighter place it gets brackets."""
SUMMAND = _PRODUCT
"""What stands in a sum binds at least so tightly, negative numbers excepted."""

_SIGNS: dict[type[ast.operator], tuple[str, int, int]] = {
    ast.Add: (" + ", _SUM, _SUM),
    ast.Sub: (" − ", _SUM, _PRODUCT),
    ast.Mult: (" × ", _PRODUCT, _PRODUCT),
    ast.Div: (" ÷ ", _PRODUCT, _SIGN),
    ast.MatMult: (" @ ", _PRODUCT, _SIGN),
    ast.BitAnd: (" and ", _BOTH, _COMPARISON),
    ast.BitOr: (" or ", _EITHER, _BOTH),
}
"""Operation → its sign, how tightly it binds, and how tightly what stands to its right must."""
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.Lt: "<",
    ast.LtE: "≤",
    ast.Gt: ">",
    ast.GtE: "≥",
    ast.Is: "is",
    ast.IsNot: "is not",
}
ROOM = 60
"""Numbers that take more characters than this are told by their shape."""
ALL_DIGITS, MANY_DIGITS = 6, 4
"""How many digits a number has that stands alone, and one among many."""
_RAISED = {1: "", 2: "²", 3: "³"}
_TOLD = {"expand": 3, "unsqueeze": 2, "scatter": 4, "cat": 2, "one_hot": 1}
"""Of these functions so many arguments are shown; the rest only says in which form a value comes."""


class Piece(NamedTuple):
    """Text, and how tightly it holds together."""

    text: str
    binds: int
    fits: bool = True
    """Whether it tells all numbers of the value."""

    def within(self, binds: int) -> str:
        """The text for a place that binds so tightly."""
        return self.text if self.binds >= binds else f"({self.text})"


class Writer:
    """Writes formulas out. ``names`` are the values that decide between cases; ``texts`` stand in place of names."""

    def __init__(self, names: Mapping[str, Any], texts: Mapping[str, Piece] | None = None) -> None:
        self.names, self.texts = names, texts
        self.fits = True
        """Whether everything written so far tells all its numbers."""
        self.complex = any(isinstance(x, Value) and x.dtype.startswith("complex") for x in names.values())
        self._evaluator = Evaluator(names)

    def write(self, tree: ast.expr) -> str:
        """The whole formula.

        >>> from hookviz.analysis.formulas.derivatives import parsed
        >>> Writer({}).write(parsed("-grad * conj(self) / t(other) ** 2"))
        '−grad × self ÷ otherᵀ²'
        """
        return self._piece(tree).text

    def _piece(self, node: ast.expr) -> Piece:
        match node:
            case ast.Constant(value):
                return text_of(value)
            case ast.Name(id="pi"):
                return Piece("π", _ATOM)
            case ast.Name(id=name):
                piece = (self.texts or {}).get(name, Piece(name, _ATOM))
                self.fits = self.fits and piece.fits
                return piece
            case ast.UnaryOp(operand=inner):
                return Piece(f"−{self._piece(inner).within(_SIGN)}", _SIGN)
            case ast.BinOp(op=ast.Pow()):
                return self._power(node)
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.Mult | ast.Div) and self._is_one(right):
                    return self._piece(left)
                sign, binds, tighter = _SIGNS[type(op)]
                return Piece(f"{self._piece(left).within(binds)}{sign}{self._piece(right).within(tighter)}", binds)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                sides = (self._piece(side).within(_SUM) for side in (left, right))
                return Piece(f" {_COMPARISONS[type(op)]} ".join(sides), _COMPARISON)
            case ast.BoolOp(values=parts):
                return Piece(" or ".join(self._piece(part).within(_BOTH) for part in parts), _EITHER)
            case ast.IfExp():
                return self._choice(node)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._call(name, node, arguments)
        raise TypeError(ast.dump(node))

    def _choice(self, node: ast.IfExp) -> Piece:
        """The case that holds; both where nobody knows."""
        try:
            return self._piece(self._evaluator.branch(node))
        except Exception:  # the values that decide were not kept, or are such as nobody can compute with
            one, test, other = (self._piece(part) for part in (node.body, node.test, node.orelse))
            text = say("why.choice", one=one.within(_EITHER), test=test.text, other=other.within(_ALL))
            return Piece(text, _ALL)

    def _power(self, node: ast.BinOp) -> Piece:
        base, exponent = self._piece(node.left), node.right
        known = self._known(exponent) if self.texts is not None or isinstance(exponent, ast.Constant) else None
        if known == 1:
            return base
        if known in _RAISED:
            return Piece(f"{base.within(_ATOM)}{_RAISED[known]}", _POWER)
        raised = self._piece(exponent) if known is None else text_of(known)
        return Piece(f"{base.within(_ATOM)}^{raised.within(_ATOM)}", _POWER)

    def _call(self, name: str, node: ast.expr, arguments: list[ast.expr]) -> Piece:
        pieces = [self._piece(part) for part in arguments[: _TOLD.get(name)]]
        match name:
            case "conj" if not self.complex:
                return pieces[0]
            case "unsqueeze" if self.names.get("keepdim") or self._is_nothing(arguments[1]):
                return pieces[0]
            case "t":
                return Piece(f"{pieces[0].within(_ATOM)}ᵀ", _ATOM)
            case "sqrt":
                return Piece(f"√{pieces[0].within(_ATOM)}", _ATOM)
        if name in PLAIN and self.texts is not None and (known := self._known(node)) is not None:
            return text_of(known)
        if name == "opposite":
            return Piece(f"−{pieces[0].within(_SIGN)}", _SIGN)
        told = (piece.text for piece, part in zip(pieces, arguments, strict=False) if not self._is_nothing(part))
        return Piece(f"{name}({', '.join(told)})", _ATOM)

    def _known(self, node: ast.expr) -> Any:
        """The plain value of a piece, or None."""
        try:
            found = self._evaluator.value(node)
        except Exception:  # a value was not kept, or is a tensor, or such as nobody can compute with
            return None
        return None if isinstance(found, Value) else found

    def _is_nothing(self, node: ast.expr) -> bool:
        """Whether an argument is one that says: all of them."""
        return isinstance(node, ast.Name) and node.id in self.names and self.names[node.id] in (None, ())

    def _is_one(self, node: ast.expr) -> bool:
        """Whether a factor is a choice that has come out as no factor at all."""
        return isinstance(node, ast.IfExp) and self._known(node) == 1


def text_of(x: Any) -> Piece:
    """A value in a formula: its numbers when they fit, or a plain setting.

    >>> text_of(-2.0), text_of((2, 3)).text
    (Piece(text='-2', binds=4, fits=True), '(2, 3)')
    """
    if isinstance(x, Value):
        line = x.line(MANY_DIGITS if x.shape else ALL_DIGITS)
        fits = line is not None and len(line) <= ROOM
        text = line if line is not None and fits else x.text()
        return Piece(text, _ATOM if text.startswith("[") else _bound(text), fits)
    if isinstance(x, list):
        pieces = [Piece(say("name.none"), _ATOM) if part is None else text_of(part) for part in x]
        return Piece(f"[{', '.join(piece.text for piece in pieces)}]", _ATOM, all(piece.fits for piece in pieces))
    if isinstance(x, int | float | complex) and not isinstance(x, bool):
        return _number(x)
    return Piece(repr(x), _ATOM)


def _number(x: complex) -> Piece:
    if x == 2**63 - 1:  # as far as it goes
        return Piece(say("why.end"), _ATOM)
    text = str(x) if isinstance(x, int) else format_number(x)
    return Piece(text, _bound(text))


def _bound(text: str) -> int:
    """A negative or a complex number is like a sum, and so is a tensor that is told by its shape."""
    return _ATOM if text.replace(".", "").isalnum() else _SUM if " " not in text else _ALL
