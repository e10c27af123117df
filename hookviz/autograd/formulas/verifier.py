"""Verify the formulas of a trace: compute them from its values, and compare with its gradients."""

import operator
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

import torch

from hookviz.analysis.formulas.derivatives import Formula, find_formulas, load_derivatives, names_of
from hookviz.analysis.formulas.evaluation import Missing, NoReading, NotRecorded
from hookviz.analysis.formulas.formula_inputs import known_or_missing
from hookviz.autograd.formulas.bounded_values import BoundedValue, add
from hookviz.autograd.formulas.functions import TooLarge
from hookviz.autograd.formulas.recorded_match import match_recorded, rebuild
from hookviz.autograd.formulas.torch_evaluation import evaluate
from hookviz.autograd.torch_internals import DisableTorchFunction, disable_dispatch_modes
from hookviz.trace import Note
from hookviz.trace.reason_rows import EXPLAINED, SYMBOLS, UNEXPLAINED, ReasonRow
from hookviz.trace.values import Value, Values


class TorchVerifier:
    """The ``Verifier`` of recorded traces: computes formulas with torch."""

    @contextmanager
    def modes_paused(self) -> Iterator[None]:
        """Compute within this context without grad mode, autocast, and the user's function and dispatch modes."""
        with torch.no_grad(), DisableTorchFunction(), disable_dispatch_modes(), torch.autocast("cpu", enabled=False):
            yield

    def check_sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """Give the reason of ``value``, which a node of the kind ``op`` sent along its edge ``slot``."""
        candidates = find_formulas(op, slot)
        goal = rebuild(known_or_missing(value))
        rows = [_verify(formula, _quote(formula, candidates[0]), names, goal) for formula in candidates]
        # The trace may be from another release of torch: the formula that matches the recorded gradient is right.
        return next((row for row in rows if row.verdict == EXPLAINED), rows[0])

    def check_sum(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """Give the reason of ``value``, the sum of ``terms`` in this order."""
        row = ReasonRow("", None, UNEXPLAINED)
        goal, *addends = (rebuild(known_or_missing(recorded)) for recorded in (value, *terms))
        if not all(isinstance(number, BoundedValue) for number in (goal, *addends)):
            return row._replace(verdict=SYMBOLS, notes=(Note.of("why.large"),))
        try:
            total = reduce(operator.add, (addend.value for addend in addends))
            is_sum = match_recorded(total, goal.tensor) is not None
            # The rounding error is computed only if it matters: there may be thousands of terms.
            is_sum = is_sum or match_recorded(reduce(add, addends), goal.tensor) is not None
        except Exception as error:  # torch cannot add such values: 8-bit dtypes, or different shapes
            return row._replace(notes=(Note.of("why.failed", error=type(error).__name__),))
        return row._replace(verdict=EXPLAINED) if is_sum else row._replace(notes=(Note("why.differs"),))


def _quote(formula: Formula, installed: Formula) -> ReasonRow:
    """Quote a formula with PyTorch's own text; with a note if the ``installed`` release has another one."""
    if formula is not installed:
        return ReasonRow(formula.text, formula.wordings[0], SYMBOLS, (Note.of("why.other_release"),))
    if formula.entry is None or formula.source is not None:
        return ReasonRow(formula.text, formula.source, SYMBOLS)
    return ReasonRow(formula.text, None, SYMBOLS, (Note.of("why.no_text" if load_derivatives() else "why.no_file"),))


def _verify(formula: Formula, quote: ReasonRow, names: Mapping[str, Any], goal: Any) -> ReasonRow:
    """Compute a formula and compare it with ``goal``, the recorded gradient; return ``quote`` with the verdict."""
    terms = {name: rebuild(names[name]) for name in names_of(formula.text) if name in names}
    try:
        computed = evaluate(formula.tree, terms)
        if isinstance(goal, NotRecorded):
            raise Missing(goal.why)
        conversions = match_recorded(computed, goal.tensor)
    except Missing as missing:
        return quote._replace(notes=(Note.of(f"why.{missing}"),))
    except TooLarge:
        return quote._replace(notes=(Note.of("why.large"),))
    except NoReading:
        return quote._replace(verdict=UNEXPLAINED, notes=(Note.of("why.case"),))
    except Exception as error:  # torch cannot compute with such values
        return quote._replace(verdict=UNEXPLAINED, notes=(Note.of("why.failed", error=type(error).__name__),))
    if conversions is None:
        return quote._replace(verdict=UNEXPLAINED, notes=(Note("why.differs"),))
    return quote._replace(verdict=EXPLAINED, notes=(*quote.notes, *conversions))
