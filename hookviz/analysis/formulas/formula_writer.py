"""Write formulas for people: with mathematical signs, in the names of the values or with the values themselves."""

import ast
from collections.abc import Mapping
from typing import Any, NamedTuple

from hookviz.analysis.formulas.derivatives import parse_formula
from hookviz.analysis.formulas.evaluation import PLAIN_FUNCTIONS, Evaluator, NotRecorded
from hookviz.support.messages import _
from hookviz.trace.values import Value, format_number

_ALL, _OR, _AND, _COMPARISON, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(9)
"""The precedence of a piece of text, weakest first; where a higher one is required, the piece gets brackets."""
SUMMAND = _PRODUCT
"""The precedence that a term of a sum must have."""

_SIGNS: dict[type[ast.operator], tuple[str, int, int]] = {
    ast.Add: (" + ", _SUM, _SUM),
    ast.Sub: (" − ", _SUM, _PRODUCT),
    ast.Mult: (" × ", _PRODUCT, _PRODUCT),
    ast.Div: (" ÷ ", _PRODUCT, _SIGN),
    ast.MatMult: (" @ ", _PRODUCT, _SIGN),
    ast.BitAnd: (" and ", _AND, _COMPARISON),
    ast.BitOr: (" or ", _OR, _AND),
}
"""Operation → its sign, its precedence, and the precedence that its right operand must have."""
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "=",
    ast.Lt: "<",
    ast.LtE: "≤",
    ast.Gt: ">",
    ast.GtE: "≥",
    ast.Is: "is",
    ast.IsNot: "is not",
}
MAX_VALUE_LENGTH = 60
"""A value whose numbers take more characters than this is shown by its shape."""
SCALAR_DIGITS, TENSOR_DIGITS = 6, 4
"""The significant digits of a number: a scalar, and an element of a larger tensor."""
_SUPERSCRIPTS = {1: "", 2: "²", 3: "³"}
_SHOWN_ARGUMENTS = {"expand": 3, "unsqueeze": 2, "scatter": 4, "cat": 2, "one_hot": 1}
"""Function → the number of arguments that are shown; the others only concern the layout of the value."""


class NotCovered(Exception):
    """The formula does not cover this case: its branch for it is None."""


class Piece(NamedTuple):
    """A piece of the text of a formula, with its precedence."""

    text: str
    precedence: int
    fits: bool = True
    """Whether the text shows all numbers of the value."""

    def within(self, precedence: int) -> str:
        """The text, in brackets if its precedence is lower than ``precedence``."""
        return self.text if self.precedence >= precedence else f"({self.text})"


class FormulaWriter:
    """Writes a formula as text.

    ``names`` are the values that decide conditional expressions; with ``with_values`` they also replace their names.

    Raises:
        NotCovered: the formula does not cover this case.
    """

    def __init__(self, names: Mapping[str, Any], *, with_values: bool = False) -> None:
        self.names, self.with_values = names, with_values
        self.fits = True
        """Whether everything written so far shows all numbers of its values."""
        self.complex = any(isinstance(x, Value) and x.dtype.startswith("complex") for x in names.values())
        self._evaluator = Evaluator(names)

    def write(self, formula: str) -> str:
        """Write the whole formula.

        >>> FormulaWriter({}).write("-grad * conj(self) / t(other) ** 2")
        '−grad × self ÷ otherᵀ²'
        """
        return self._write_piece(parse_formula(formula)).text

    def _write_piece(self, node: ast.expr) -> Piece:
        match node:
            case ast.Constant(value):
                return text_of(value)
            case ast.Name(id="pi"):
                return Piece("π", _ATOM)
            case ast.Name(id=name):
                return self._write_name(name)
            case ast.UnaryOp(operand=inner):
                return Piece(f"−{self._write_piece(inner).within(_SIGN)}", _SIGN)
            case ast.BinOp(op=ast.Pow()):
                return self._write_power(node)
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.Mult | ast.Div) and self._is_factor_one(right):
                    return self._write_piece(left)
                sign, precedence, right_precedence = _SIGNS[type(op)]
                texts = self._write_piece(left).within(precedence), self._write_piece(right).within(right_precedence)
                return Piece(sign.join(texts), precedence)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                sides = (self._write_piece(side).within(_SUM) for side in (left, right))
                return Piece(f" {_COMPARISONS[type(op)]} ".join(sides), _COMPARISON)
            case ast.BoolOp(values=operands):
                return Piece(" or ".join(self._write_piece(operand).within(_AND) for operand in operands), _OR)
            case ast.IfExp():
                return self._write_conditional(node)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self._write_call(name, node, arguments)
        raise TypeError(ast.dump(node))

    def _write_name(self, name: str) -> Piece:
        value = self.names.get(name, NotRecorded("none"))
        if not self.with_values or isinstance(value, NotRecorded):
            return Piece(name, _ATOM)
        piece = text_of(value)
        self.fits = self.fits and piece.fits
        return piece

    def _write_conditional(self, node: ast.IfExp) -> Piece:
        """The branch that applies; the whole conditional if that is not known."""
        try:
            branch = self._evaluator.branch(node)
        except Exception:  # the values that decide were not recorded, or cannot be computed with
            body, test, orelse = (self._write_piece(part) for part in (node.body, node.test, node.orelse))
            text = _("{one} if {test}, else {other}").format(
                one=body.within(_OR), test=test.text, other=orelse.within(_ALL)
            )
            return Piece(text, _ALL)
        if isinstance(branch, ast.Constant) and branch.value is None:
            raise NotCovered
        return self._write_piece(branch)

    def _write_power(self, node: ast.BinOp) -> Piece:
        base, exponent = self._write_piece(node.left), node.right
        known = self._plain_value(exponent) if self.with_values or isinstance(exponent, ast.Constant) else None
        if known == 1:
            return base
        if known in _SUPERSCRIPTS:
            return Piece(f"{base.within(_ATOM)}{_SUPERSCRIPTS[known]}", _POWER)
        power = self._write_piece(exponent) if known is None else text_of(known)
        return Piece(f"{base.within(_ATOM)}^{power.within(_ATOM)}", _POWER)

    def _write_call(self, name: str, node: ast.expr, arguments: list[ast.expr]) -> Piece:
        pieces = [self._write_piece(argument) for argument in arguments[: _SHOWN_ARGUMENTS.get(name)]]
        match name:
            case "conj" if not self.complex:
                return pieces[0]
            case "unsqueeze" if self.names.get("keepdim") or self._selects_all(arguments[1]):
                return pieces[0]
            case "t":
                return Piece(f"{pieces[0].within(_ATOM)}ᵀ", _ATOM)
            case "sqrt":
                return Piece(f"√{pieces[0].within(_ATOM)}", _ATOM)
        if name in PLAIN_FUNCTIONS and self.with_values and (known := self._plain_value(node)) is not None:
            return text_of(known)
        if name == "opposite":
            return Piece(f"−{pieces[0].within(_SIGN)}", _SIGN)
        pairs = zip(pieces, arguments, strict=False)
        shown = (piece.text for piece, argument in pairs if not self._selects_all(argument))
        return Piece(f"{name}({', '.join(shown)})", _ATOM)

    def _plain_value(self, node: ast.expr) -> Any:
        """The value of an expression; None if it is a tensor or not known."""
        try:
            value = self._evaluator.value(node)
        except Exception:  # a value was not recorded, is a tensor, or cannot be computed with
            return None
        return None if isinstance(value, Value) else value

    def _selects_all(self, node: ast.expr) -> bool:
        """Whether an argument is None or empty, which selects all dimensions."""
        return isinstance(node, ast.Name) and node.id in self.names and self.names[node.id] in (None, ())

    def _is_factor_one(self, node: ast.expr) -> bool:
        """Whether a factor is a conditional expression whose value is 1, so that it can be left out."""
        return isinstance(node, ast.IfExp) and self._plain_value(node) == 1


def text_of(x: Any) -> Piece:
    """Format a value for a formula: its numbers if they fit, else its shape; or a plain setting.

    >>> text_of(-2.0), text_of((2, 3)).text
    (Piece(text='-2', precedence=4, fits=True), '(2, 3)')
    """
    if isinstance(x, Value):
        line = x.line(TENSOR_DIGITS if x.shape else SCALAR_DIGITS)
        fits = line is not None and len(line) <= MAX_VALUE_LENGTH
        text = line if line is not None and fits else x.text()
        return Piece(text, _ATOM if text.startswith("[") else _value_precedence(text), fits)
    if isinstance(x, list):
        pieces = [Piece("None", _ATOM) if item is None else text_of(item) for item in x]
        return Piece(f"[{', '.join(piece.text for piece in pieces)}]", _ATOM, all(piece.fits for piece in pieces))
    if isinstance(x, int | float | complex) and not isinstance(x, bool):
        return _format_number(x)
    return Piece(repr(x), _ATOM)


def _format_number(x: complex) -> Piece:
    if x == 2**63 - 1:  # the end of a slice without an end
        return Piece(_("end"), _ATOM)
    text = str(x) if isinstance(x, int) else format_number(x)
    return Piece(text, _value_precedence(text))


def _value_precedence(text: str) -> int:
    """The precedence of a value: a negative number is like a sum, a complex number or a shape even weaker."""
    return _ATOM if text.replace(".", "").isalnum() else _SUM if " " not in text else _ALL
