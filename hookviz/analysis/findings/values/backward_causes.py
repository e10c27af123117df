"""Explain why the backward of an op turns a finite gradient into NaN or Inf."""

from collections.abc import Callable, Iterator

from hookviz.analysis.findings.values.op_causes import ForwardOps
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import _
from hookviz.trace.values import format_number


def explain_backward(statistics: PassStatistics, node: int) -> Iterator[str]:
    """Yield a sentence on why the derivative of an op is infinite, if the numbers that it saved show that."""
    ops = ForwardOps(statistics, [node], {})
    explain = _EXPLANATIONS.get(ops.op_name(node))
    if explain is not None:
        yield from explain(ops, node)


def _explain_root(ops: ForwardOps, node: int) -> Iterator[str]:
    result = ops.saved_tensor(node, "result")
    if result is not None and result.zero:
        yield _("It divides by the result of the forward, which is 0: the square root has no finite slope at 0.")


def _explain_log(ops: ForwardOps, node: int) -> Iterator[str]:
    value = ops.saved_tensor(node, "self")
    if value is not None and value.zero:
        yield _("It divides by the input of the forward, which is 0: the logarithm has no finite slope at 0.")


def _explain_division(ops: ForwardOps, node: int) -> Iterator[str]:
    divisor = ops.saved_tensor(node, "other")
    if divisor is not None and divisor.zero:
        yield _("It divides by the divisor of the forward, which is 0.")


def _explain_power(ops: ForwardOps, node: int) -> Iterator[str]:
    base, exponent = ops.saved_tensor(node, "self"), ops.saved_number(node, "exponent")
    if base is not None and base.zero and exponent is not None and exponent < 1:
        yield _("The power {exponent} has no finite slope at 0.").format(exponent=format_number(exponent))


_EXPLANATIONS: dict[str, Callable[[ForwardOps, int], Iterator[str]]] = {
    **dict.fromkeys(("Log", "Log2", "Log10"), _explain_log),
    "Sqrt": _explain_root,
    "Div": _explain_division,
    "Pow": _explain_power,
}
"""Op → the function that explains an infinite derivative."""
