"""Explain why the backward of an op turns a finite gradient into NaN or Inf."""

from collections.abc import Callable, Iterator

from hookviz.analysis.findings.ops import LOGARITHMS
from hookviz.analysis.findings.values.op_causes import ForwardOps, contains_kind, holds_inf
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import N_, _
from hookviz.trace.values import as_tuple, format_number


def explain_backward(statistics: PassStatistics, node: int) -> Iterator[str]:
    """Yield a sentence on why the derivative of an op is infinite, if the numbers that it saved show that."""
    ops = ForwardOps(statistics, [node], {})
    explain = _EXPLANATIONS.get(ops.op_name(node))
    reasons = [] if explain is None else list(explain(ops, node))
    yield from reasons
    sent = as_tuple(statistics.trace.rows[statistics.compute_steps[node]].after)
    has_nan = any(contains_kind(statistics.value(index), "nan") for index in sent if index is not None)
    users = [statistics.trace.ops[user] for user in statistics.users.get(node, ())]
    if reasons and has_nan and any(user.startswith("WhereBackward") for user in users):
        slope = next((place for place, _slot in _list_infinite_factors(ops, node)), node)
        yield _(
            "torch.where takes the other number there and sends 0 back, and 0 times Inf is NaN: give {op} harmless "
            "numbers there, as in torch.where(mask, x, 1), before it computes."
        ).format(op=statistics.describe_node(slope))


def _explain_slope(ops: ForwardOps, node: int) -> Iterator[str]:
    name, text = _SLOPES[ops.op_name(node)]
    value = ops.saved_tensor(node, name)
    if value is None or value.zero:
        yield _(text)


def _explain_division(ops: ForwardOps, node: int) -> Iterator[str]:
    divisor, result = ops.saved_tensor(node, "other"), ops.saved_tensor(node, "result")
    if (divisor is not None and divisor.zero) or (result is not None and holds_inf(result)):
        yield _("It divides by a number of the forward where that is 0.")


def _explain_power(ops: ForwardOps, node: int) -> Iterator[str]:
    base, exponent = ops.saved_tensor(node, "self"), ops.saved_number(node, "exponent")
    if exponent is not None and exponent < 1 and (base is None or base.zero):
        yield _("The power {exponent} has no finite slope at 0.").format(exponent=format_number(exponent))


def _explain_product(ops: ForwardOps, node: int) -> Iterator[str]:
    """A gradient of 0 times a factor that is Inf, because the op that made it makes Inf of 0."""
    statistics = ops.statistics
    arrived = statistics.trace.rows[statistics.compute_steps[node]].before
    values = [statistics.value(index) for index in as_tuple(arrived) if index is not None]
    if not any(value.zero for value in values):
        return
    for place, slot in _list_infinite_factors(ops, node):
        if _is_spoiled(statistics, node, 1 - slot):
            text = _("It multiplies a gradient of 0 by what {op} made, which is infinite where its input is 0.")
            yield text.format(op=statistics.describe_node(place))


def _list_infinite_factors(ops: ForwardOps, node: int) -> Iterator[tuple[int, int]]:
    """Yield each op that makes Inf of 0 and whose result a product takes, and the slot; none of another op."""
    for slot in (0, 1) if ops.op_name(node) == "Mul" else ():
        place = ops.statistics.trace.edges.get((node, slot))
        if place is not None and ops.op_name(place[0]) in _INFINITE_AT_0:
            yield place[0], slot


def _is_spoiled(statistics: PassStatistics, node: int, slot: int) -> bool:
    """Whether an op sends NaN from a slot."""
    sent = statistics.trace.rows[statistics.compute_steps[node]].after
    return isinstance(sent, tuple) and slot < len(sent) and statistics.is_nonfinite(sent[slot])


_SLOPES = {
    "Sqrt": ("result", N_("It divides by the result of the forward: the square root has no finite slope at 0.")),
    **dict.fromkeys(
        LOGARITHMS,
        ("self", N_("It divides by the input of the forward: the logarithm has no finite slope at 0.")),
    ),
}
"""Op with a slope that is infinite at 0 → what it saved, and why the slope is infinite."""
_INFINITE_AT_0 = (*LOGARITHMS, "Reciprocal", "Rsqrt")
_EXPLANATIONS: dict[str, Callable[[ForwardOps, int], Iterator[str]]] = {
    **dict.fromkeys(_SLOPES, _explain_slope),
    **dict.fromkeys(("Div", "Reciprocal"), _explain_division),
    "Pow": _explain_power,
    "Mul": _explain_product,
}
"""Op → the function that explains an infinite derivative."""
