"""The reasons for gradients as plain data, and the protocol of the verifier that checks formulas."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Literal, NamedTuple, Protocol

from hookviz.trace.notes import Note
from hookviz.trace.values import Value, Values

Verdict = Literal["explained", "symbols only", "not explained"]
EXPLAINED: Final = "explained"
SYMBOLS: Final = "symbols only"
UNEXPLAINED: Final = "not explained"


class ReasonRow(NamedTuple):
    """A formula for a gradient, and whether its result is the gradient that was recorded.

    Many gradients share a row, so it holds none of their values, and no text in a human language.
    """

    reading: str
    """An expression in torch's terms, ``grad * conj(other)``; empty for a sum, or if no formula is known."""
    source: str | None
    """The entry in torch's ``derivatives.yaml`` that ``reading`` is derived from."""
    verdict: Verdict
    notes: tuple[Note, ...] = ()
    """Further operations on the result, such as a sum; or why there are no values or no explanation."""


StepReasons = int | None | tuple[int | None, ...]
"""Indexes of ``ReasonRow`` for a step: one for a sum, one for each gradient that a node sends, or None."""


class Verifier(Protocol):
    """Computes formulas from the values of a trace and compares them with the gradients that were recorded."""

    def modes_paused(self) -> AbstractContextManager[None]:
        """Return a ``with`` block that hides computations from torch's active modes. Checks must run within it."""

    def check_sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """Check the formula for ``value``, which a node with the op ``op`` sent along its edge ``slot``.

        ``names`` maps the names in the formula to values, settings, or the reason why something is unknown.
        """

    def check_sum(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """Check that ``value`` is the sum of ``terms``."""
