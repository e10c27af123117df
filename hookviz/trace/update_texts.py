"""What became of gradients between a pass and an optimizer step, and of the parameters in the step, in words."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hookviz.support.messages import _, join_first, join_list
from hookviz.trace.changes import find_factor
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.values import Value, format_number, is_same_value

MAX_NAMED = 3
"""A sentence names at most this many gradients."""
DIGITS = 3
"""Significant digits of a number in what is said of a parameter."""


class GradientEdit(NamedTuple):
    """A gradient that is not what the last pass left."""

    name: str
    before: Value
    after: Value


def list_gradient_edits(trace: NamedTables, step: int) -> list[GradientEdit]:
    """List the gradients that were changed since the pass when an optimizer took the step with this number.

    Clipping multiplies a small gradient by 1: that writes to it, and changes no number.
    """
    edits = []
    update = trace.lookup.updates.get(step)
    for parameter, value in update.regraded if update is not None else ():
        names = trace.parameters[parameter].names
        before = trace.lookup.find_gradient_before(names, step)
        if before is not None and not is_same_value(trace.values[before], trace.values[value]):
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
    return known[0] if is_common and all(_is_multiple(edit, known[0]) for edit in edits) else None


def _is_multiple(edit: GradientEdit, factor: float) -> bool:
    """Whether the norm of a gradient changed as if the gradient was multiplied by ``factor``."""
    return math.isclose(abs(factor) * edit.before.norm, edit.after.norm, rel_tol=1e-3)


def list_parameter_moves(trace: NamedTables, step: int) -> list[tuple[str, str]]:
    """List (parameter, what the optimizer did to it) for each parameter that was measured at a step.

    The last entry counts the other parameters, if there are any. The list is empty if none was measured.
    """
    update = trace.lookup.updates.get(step)
    if update is None or not update.moves:
        return []
    edits = {edit.name: edit for edit in list_gradient_edits(trace, step)}
    factors = _find_factors(edits)
    # Clipping multiplies all gradients by one factor: what was multiplied by others, something else multiplied, too.
    is_clipped = len({format_number(factor, DIGITS) for factor in factors.values()}) == 1 and any(
        _was_since_pass(trace, clip.step, step) for clip in trace.clips
    )
    moves = []
    for number, (parameter, norm, group) in enumerate(update.moves, 1):
        name = next(iter(trace.parameters[parameter].names), "") or _("parameter {number}").format(number=number)
        facts = [_("has no gradient")] if parameter in update.without_grad else []
        if name in edits:
            facts.append(_say_edit(edits[name], factors.get(name), is_clipped=is_clipped))
        moves.append((name, join_list([_describe_move(norm, update.rates, group), *facts])))
    others = update.held - len(moves)
    if others > 0:
        moves.append(("", _("… {count} more").format(count=f"{others:,}")))
    return moves


def _describe_move(norm: float | None, rates: tuple[float | None, ...], group: int) -> str:
    if norm is None:
        return _("moved to NaN or Inf")
    if norm == 0:
        return _("did not move")
    rate = rates[group] if group < len(rates) else None
    moved = format_number(norm, DIGITS)
    if rate is None:
        return _("moved by {norm} (norm)").format(norm=moved)
    return _("moved by {norm} (norm), lr {rate}").format(norm=moved, rate=format_number(rate, DIGITS))


def _find_factors(edits: Mapping[str, GradientEdit]) -> dict[str, float]:
    """Return what each gradient was multiplied by; one with a single number counts if it fits the others."""
    found = {name: find_factor(edit.before, edit.after) for name, edit in edits.items()}
    factors = {name: factor for name, factor in found.items() if factor is not None}
    common = next(iter(factors.values()), None)
    if common is not None:
        fitting = (name for name, edit in edits.items() if _is_multiple(edit, common))
        factors = {**dict.fromkeys(fitting, common), **factors}
    return factors


def _say_edit(edit: GradientEdit, factor: float | None, *, is_clipped: bool) -> str:
    """Say what became of a gradient between the pass and the step."""
    if edit.after.norm == 0:
        return _("gradient set to 0")
    if factor is None:
        return _("gradient changed since the pass")
    text = _("gradient clipped by × {factor}") if is_clipped else _("gradient multiplied by {factor}")
    return text.format(factor=format_number(factor, DIGITS))


def _was_since_pass(trace: NamedTables, count: int, step: int) -> bool:
    """Whether something that happened when there were ``count`` steps came after the last pass before ``step``."""
    last = next((index for index in range(step - 1, -1, -1) if trace.rows[index].kind != "step_pre_hook"), -1)
    return last < count <= step
