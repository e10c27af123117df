"""Explain why the backward of an op turns a finite gradient into NaN or Inf."""

from collections.abc import Callable, Iterator

from hookviz.analysis.findings.ops import INFINITE_AT_0, LOGARITHMS, get_op
from hookviz.analysis.findings.values.op_causes import contains_kind, holds_inf
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import N_, _
from hookviz.trace.values import format_number


def explain_backward(statistics: PassStatistics, node: int) -> Iterator[str]:
    """Yield a sentence on why the derivative of an op is infinite, if the numbers that it saved show that."""
    explain = _EXPLANATIONS.get(get_op(statistics.trace, node))
    reasons = [] if explain is None else list(explain(statistics, node))
    yield from reasons
    has_nan = any(contains_kind(value, "nan") for value in statistics.values(statistics.sent(node)))
    users = [statistics.trace.ops[user] for user in statistics.users.get(node, ())]
    if reasons and has_nan and any(user.startswith("WhereBackward") for user in users):
        slope = next((place for place, _slot in _list_infinite_factors(statistics, node)), node)
        yield _(
            "torch.where takes the other number there and sends 0 back, and 0 times Inf is NaN: give {op} harmless "
            "numbers there, as in torch.where(mask, x, 1), before it computes."
        ).format(op=statistics.describe_node(slope))


def _explain_slope(statistics: PassStatistics, node: int) -> Iterator[str]:
    name, text = _SLOPES[get_op(statistics.trace, node)]
    value = statistics.saved_tensor(node, name)
    if value is None or value.zero:
        yield _(text)


def _explain_division(statistics: PassStatistics, node: int) -> Iterator[str]:
    divisor, result = (statistics.saved_tensor(node, name) for name in ("other", "result"))
    if (divisor is not None and divisor.zero) or (result is not None and holds_inf(result)):
        yield _("It divides by a number of the forward where that is 0.")


def _explain_power(statistics: PassStatistics, node: int) -> Iterator[str]:
    base, exponent = statistics.saved_tensor(node, "self"), statistics.saved_number(node, "exponent")
    if exponent is not None and exponent < 1 and (base is None or base.zero):
        yield _("The power {exponent} has no finite slope at 0.").format(exponent=format_number(exponent))


def _explain_arc(statistics: PassStatistics, node: int) -> Iterator[str]:
    value = statistics.saved_tensor(node, "self")
    if value is None or value.max == 1 or value.min == -1:
        yield _("The {op} has no finite slope at 1 and -1: keep its input between them.").format(
            op="arccos" if get_op(statistics.trace, node) == "Acos" else "arcsin"
        )


def _explain_product(statistics: PassStatistics, node: int) -> Iterator[str]:
    """A gradient of 0 times a factor that is Inf, because the op that made it makes Inf of 0."""
    arrived, sent = statistics.trace.rows[statistics.compute_steps[node]].before, statistics.sent(node)
    if not any(value.zero for value in statistics.values(arrived)):
        return
    for place, slot in _list_infinite_factors(statistics, node):
        other = 1 - slot
        if other < len(sent) and statistics.is_nonfinite(sent[other]):
            text = _("It multiplies a gradient of 0 by what {op} made, which is infinite where its input is 0.")
            yield text.format(op=statistics.describe_node(place))


def _list_infinite_factors(statistics: PassStatistics, node: int) -> Iterator[tuple[int, int]]:
    """Yield each op that makes Inf of 0 and whose result a product takes, and the slot; none of another op."""
    for slot in (0, 1) if get_op(statistics.trace, node) == "Mul" else ():
        place = statistics.trace.edges.get((node, slot))
        if place is not None and get_op(statistics.trace, place[0]) in INFINITE_AT_0:
            yield place[0], slot


_SLOPES = {
    "Sqrt": ("result", N_("It divides by the result of the forward: the square root has no finite slope at 0.")),
    **dict.fromkeys(
        LOGARITHMS,
        ("self", N_("It divides by the input of the forward: the logarithm has no finite slope at 0.")),
    ),
}
"""Op with a slope that is infinite at 0 → what it saved, and why the slope is infinite."""
_EXPLANATIONS: dict[str, Callable[[PassStatistics, int], Iterator[str]]] = {
    **dict.fromkeys(_SLOPES, _explain_slope),
    **dict.fromkeys(("Div", "Reciprocal"), _explain_division),
    **dict.fromkeys(("Acos", "Asin"), _explain_arc),
    "Pow": _explain_power,
    "Mul": _explain_product,
}
"""Op → the function that explains an infinite derivative."""
