"""Formulas computed from the values of a trace, and compared with the gradients that were recorded."""

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
from hookviz.autograd.formulas.evaluation import evaluate
from hookviz.autograd.formulas.functions import TooLarge
from hookviz.autograd.formulas.verification import agrees, rebuilt
from hookviz.autograd.torch_internals import DisableTorchFunction, disable_dispatch_modes
from hookviz.trace import Note
from hookviz.trace.reason_rows import EXPLAINED, SYMBOLS, UNEXPLAINED, ReasonRow
from hookviz.trace.values import Value, Values


class TorchVerifier:
    """Finds out with torch which formulas come to what was recorded: the ``Verifier`` of recorded traces."""

    @contextmanager
    def modes_paused(self) -> Iterator[None]:
        """Within this, torch computes as if nobody were watching, whatever modes are in force."""
        plainly = (torch.no_grad(), DisableTorchFunction(), disable_dispatch_modes())
        with plainly[0], plainly[1], plainly[2], torch.autocast("cpu", enabled=False):
            yield

    def check_sent(self, op: str, slot: int, names: Mapping[str, Any], value: Value) -> ReasonRow:
        """About ``value``, which a node of the kind ``op`` sent to its input ``slot``."""
        known = find_formulas(op, slot)
        goal = rebuilt(known_or_missing(value))
        rows = [_verify(found, _quote(found, known[0]), names, goal) for found in known]
        # A trace may come from another release of torch than the installed one: what was recorded decides.
        return next((row for row in rows if row.verdict == EXPLAINED), rows[0])

    def check_sum(self, terms: Sequence[Values], value: Values) -> ReasonRow:
        """About ``value``, which is the sum of ``terms``, in the order in which they come."""
        row = ReasonRow("", None, UNEXPLAINED)
        goal, *parts = (rebuilt(known_or_missing(part)) for part in (value, *terms))
        if not all(isinstance(part, BoundedValue) for part in (goal, *parts)):
            return row._replace(verdict=SYMBOLS, notes=(Note.of("why.large"),))
        try:
            # What rounding may have done is found out only if it matters: there may be thousands of terms.
            exact, recorded = reduce(operator.add, (part.value for part in parts)), goal.tensor
            same = agrees(exact, recorded) is not None or agrees(reduce(add, parts), recorded) is not None
        except Exception as error:  # torch cannot add up such values: they are of an 8-bit dtype, or of other shapes
            return row._replace(notes=(Note.of("why.failed", error=type(error).__name__),))
        return row._replace(verdict=EXPLAINED) if same else row._replace(notes=(Note("why.differs"),))


def _quote(found: Formula, first: Formula) -> ReasonRow:
    """A formula with PyTorch's own text; that of another release, where ``first``, the installed one's, is not it."""
    if found is not first:
        return ReasonRow(found.text, found.wordings[0], SYMBOLS, (Note.of("why.other_release"),))
    if found.entry is None or found.source is not None:
        return ReasonRow(found.text, found.source, SYMBOLS)
    return ReasonRow(found.text, None, SYMBOLS, (Note.of("why.no_text" if load_derivatives() else "why.no_file"),))


def _verify(found: Formula, about: ReasonRow, names: Mapping[str, Any], goal: Any) -> ReasonRow:
    """Whether a formula comes to ``goal``, the gradient that was recorded."""
    terms = {name: rebuilt(names[name]) for name in names_of(found.text) if name in names}
    try:
        computed = evaluate(found.tree, terms)
        if isinstance(goal, NotRecorded):
            raise Missing(goal.why)
        done = agrees(computed, goal.tensor)
    except Missing as missing:
        return about._replace(notes=(Note.of(f"why.{missing}"),))
    except TooLarge:
        return about._replace(notes=(Note.of("why.large"),))
    except NoReading:
        return about._replace(verdict=UNEXPLAINED, notes=(Note.of("why.case"),))
    except Exception as error:  # torch cannot compute with such values
        return about._replace(verdict=UNEXPLAINED, notes=(Note.of("why.failed", error=type(error).__name__),))
    if done is None:
        return about._replace(verdict=UNEXPLAINED, notes=(Note("why.differs"),))
    return about._replace(verdict=EXPLAINED, notes=(*about.notes, *done))
