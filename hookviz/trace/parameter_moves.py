"""What an optimizer did to each of its parameters in one step, in words."""

from collections.abc import Mapping

from hookviz.support.messages import _, join_list
from hookviz.trace.changes import find_factor
from hookviz.trace.gradient_edits import GradientEdit, is_multiple, list_gradient_edits
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.values import format_number

DIGITS = 3
"""Significant digits of a number here."""


def list_parameter_moves(trace: NamedTables, step: int) -> list[tuple[str, str]]:
    """List (parameter, what the optimizer did to it) for each parameter that was measured at a step.

    The last entry counts the other parameters, if there are any. The list is empty if none was measured.
    """
    update = trace.lookup.updates.get(step)
    if update is None or not update.moves:
        return []
    edits = {edit.name: edit for edit in list_gradient_edits(trace, step)}
    factors = _find_factors(edits)
    is_clipped = any(_was_since_pass(trace, clip.step, step) for clip in trace.clips)
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
        fitting = (name for name, edit in edits.items() if is_multiple(edit, common))
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
