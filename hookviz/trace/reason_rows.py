"""Why gradients are what they are, as plain data, and the protocol of what checks formulas."""

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
    """What is known of a formula: whether it comes to the gradient that was recorded.

    Many gradients share a row: it holds none of their values, and no text that is written in a language.
    """

    reading: str
    """An expression in torch's terms, ``grad * conj(other)``; empty of a sum, and where no formula is known."""
    source: str | None
    """The text in torch's ``derivatives.yaml`` of which this is a reading."""
    verdict: Verdict
    notes: tuple[Note, ...] = ()
    """What was done besides, such as summing; or why there are no values, or no explanation."""


StepReasons = int | None | tuple[int | None, ...]
"""The place of a step's ``ReasonRow``: one of a sum, one for each gradient of a node with several inputs, or none."""


class Verifier(Protocol):
    """Computes formulas from the values of a trace and compares them with the gradients that were recorded."""

    def modes_paused(self) -> AbstractContextManager[None]:
        """Within this, no mode of torch that is in force sees what is computed. Checks may be called only here."""

    def check_sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """About ``value``, which a node of the kind ``op`` sent to its input ``slot``.

        ``names`` has what a formula names: values, settings, or why something is not known.
        """

    def check_sum(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """About ``value``, which is the sum of ``terms``."""
