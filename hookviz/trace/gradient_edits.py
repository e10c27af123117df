"""The gradients that were changed between a pass and an optimizer step, in words."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from hookviz.support.messages import _, join_first
from hookviz.trace.changes import find_factor
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.values import Value, format_number

MAX_NAMED = 3
"""A sentence names at most this many gradients."""


class GradientEdit(NamedTuple):
    """A gradient that is not what the last pass left."""

    name: str
    before: Value
    after: Value


def list_gradient_edits(trace: NamedTables, step: int) -> list[GradientEdit]:
    """List the gradients that were changed since the pass when an optimizer took the step with this number."""
    edits = []
    update = trace.lookup.updates.get(step)
    for parameter, value in update.regraded if update is not None else ():
        names = trace.parameters[parameter].names
        before = trace.lookup.find_gradient_before(names, step)
        if before is not None:
            edits.append(GradientEdit(names[0], Value(*trace.values[before]), Value(*trace.values[value])))
    return edits


def describe_gradient_edits(edits: Sequence[GradientEdit]) -> str:
    """Say what became of these gradients; empty if there are none.

    >>> import torch
    >>> old, new = (Value.of(torch.tensor([3.0, 4.0]) * factor) for factor in (1, 0.1))
    >>> describe_gradient_edits([GradientEdit("w", old, new)])
    'Since the pass, the gradient of w was multiplied by 0.1.'
    """
    if not edits:
        return ""
    factor = _find_common_factor(edits)
    if factor is not None:
        on = join_first([edit.name for edit in edits], MAX_NAMED)
        text = _("Since the pass, the gradient of {on} was multiplied by {factor}.")
        return text.format(on=on, factor=format_number(factor, 4))
    changes = [
        _("{on} from {before} to {after}").format(on=edit.name, before=edit.before.text(), after=edit.after.text())
        for edit in edits
    ]
    return _("Since the pass, gradients were changed: {changes}.").format(changes=join_first(changes, MAX_NAMED))


def _find_common_factor(edits: Sequence[GradientEdit]) -> float | None:
    """Return what all gradients were multiplied by; one with a single number has to fit."""
    known = [factor for edit in edits if (factor := find_factor(edit.before, edit.after)) is not None]
    if not known:
        return None
    is_common = all(math.isclose(known[0], one, rel_tol=1e-3) for one in known)
    return known[0] if is_common and all(is_multiple(edit, known[0]) for edit in edits) else None


def is_multiple(edit: GradientEdit, factor: float) -> bool:
    """Whether the norm of a gradient changed as if the gradient was multiplied by ``factor``."""
    return math.isclose(abs(factor) * edit.before.norm, edit.after.norm, rel_tol=1e-3)
