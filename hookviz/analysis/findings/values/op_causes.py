"""Check for the ops of a forward whether their inputs and results show that they made NaN or Inf."""

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from hookviz.analysis.findings.ops import LOGARITHMS, MASKS, SOFTMAXES, get_op
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.analysis.findings.values.torchless_numbers import (
    broadcast_pairs,
    format_rows,
    largest_number,
    list_hidden_rows,
    rows_along,
)
from hookviz.support.messages import N_, _, join_list, pluralize
from hookviz.trace import NodeOutput
from hookviz.trace.values import Value, format_number, get_norm_nan_inf

_DIVIDES_BY_ZERO = N_("divides by 0")
_ZERO_BY_ZERO = N_("divides 0 by 0")
_INF_BY_INF = N_("divides Inf by Inf")
_ZERO_TIMES_INF = N_("multiplies 0 by {infinite}")
_SQUARE = 2


class OpCause(NamedTuple):
    """A way in which an op made NaN or Inf."""

    kind: str
    """``nan`` or ``inf``: the kind that it made."""
    text: str
    needs_inf: bool = False
    """Whether the input of the op already contained Inf."""


class ForwardOps:
    """Ops in the order of the forward, and the known numbers of their inputs."""

    def __init__(
        self, statistics: PassStatistics, nodes: Sequence[int], known: Mapping[NodeOutput, Value], dtype: str = ""
    ) -> None:
        self.statistics, self.nodes, self.known_values = statistics, nodes, known
        self.dtype = dtype
        """The dtype of what the last op returns; empty if it is not known."""

    def op_name(self, node: int) -> str:
        """The name of the op: ``Log`` for a node ``LogBackward0``."""
        return get_op(self.statistics.trace, node)

    @cached_property
    def causes(self) -> list[tuple[int, OpCause]]:
        """Each op that is known to have made NaN or Inf, in the order of the forward, and how; none that is masked."""
        checks = {node: _CHECKS.get(self.op_name(node)) for node in self.nodes}
        checked = ((node, check) for node, check in checks.items() if check is not None and not self.is_masked(node))
        return [(node, cause) for node, check in checked for cause in check(self, node)]

    def find_cause(self, kind: str, among: Container[int] | None = None) -> tuple[int, OpCause] | None:
        """The first op, of some or all, that is known to have made ``kind``, and how."""
        causes = (one for one in self.causes if one[1].kind == kind and (among is None or one[0] in among))
        return next(causes, None)

    def knows(self, node: int) -> bool:
        """Whether it is known what the op made."""
        return self.known_value((node, 0)) is not None

    def known_value(self, place: NodeOutput) -> Value | None:
        """What an op made, if it saved that or its numbers are known otherwise."""
        saved = self.statistics.saved_tensor(place[0], "result") if place[1] == 0 else None
        return saved if saved is not None else self.known_values.get(place)

    def is_masked(self, node: int) -> bool:
        """Whether only torch.where or masked_fill takes what an op made, as far as known without its NaN and Inf.

        What masked_fill does before a softmax hides numbers of an attention, and not what should not be there.
        """
        users = self.statistics.users.get(node, [])
        return bool(users) and all(self._is_mask(user) for user in users)

    def _is_mask(self, node: int) -> bool:
        users = self.statistics.users.get(node, []) if self.op_name(node) == "MaskedFill" else []
        is_of_attention = any(self.op_name(user) in SOFTMAXES for user in users)
        made = self.known_value((node, 0))
        is_spoiled = contains_kind(made, "nan") or contains_kind(made, "inf")
        return self.op_name(node) in MASKS and not is_of_attention and not is_spoiled

    def input_value(self, node: int, slot: int, name: str) -> Value | None:
        """The forward input of a node in ``slot``, which the node may have saved under ``name``; None if unknown.

        If the node did not save it, it may be the result that the previous op saved, or one of the ``known`` tensors.
        """
        place = self.statistics.trace.edges.get((node, slot))
        value = self.statistics.saved_tensor(node, name)
        if value is None and place is not None:
            value = self.known_value(place)
        return value if value is not None and value.note is None else None


def explain_by_statistics(ops: ForwardOps, node: int, kind: str) -> OpCause | None:
    """Explain an op that is known to have made ``kind`` from inputs without it, whose numbers are too many to keep.

    A product without NaN in its factors is NaN only if it multiplies 0 by Inf, and a quotient only if it divides 0 by 0
    or Inf by Inf. So the statistics of the inputs decide.
    """
    one, other = ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")
    op = ops.op_name(node)
    if kind == "nan" and op in SOFTMAXES:
        return _explain_masked_softmax(ops, node)
    if kind == "nan" and op == "Mul":
        return _explain_product(ops, node, (one, other))
    if kind == "nan" and op == "Div":
        return _explain_quotient(one, other)
    return OpCause(kind, _(_DIVIDES_BY_ZERO)) if op == "Div" and other is not None and other.zero else None


def _explain_quotient(one: Value | None, other: Value | None) -> OpCause | None:
    """A quotient that is NaN: of zeros or of Inf, as far as both numbers, or the divisor alone, leave only one."""
    is_infinite = any(value is not None and holds_inf(value) for value in (one, other))
    is_zero = other is not None and bool(other.zero) and (one is None or bool(one.zero))
    if is_zero == is_infinite:
        return None
    return OpCause("nan", _(_ZERO_BY_ZERO)) if is_zero else OpCause("nan", _(_INF_BY_INF), needs_inf=True)


def _explain_product(ops: ForwardOps, node: int, factors: tuple[Value | None, Value | None]) -> OpCause | None:
    """A product of Inf, which a factor holds or the op before it makes of its input, and of 0."""
    for slot, other in ((0, factors[1]), (1, factors[0])):
        largest = _find_infinite(ops, node, slot, factors[slot])
        if largest and (other is None or other.zero is None or other.zero):
            return OpCause("nan", _(_ZERO_TIMES_INF).format(infinite=_format_inf(largest)), needs_inf=True)
    return None


def _find_infinite(ops: ForwardOps, node: int, slot: int, factor: Value | None) -> float:
    """Return the Inf or -Inf of a factor, as it is known or as the op that made it shows; 0 if there is none."""
    if factor is not None:
        return 0.0 if not holds_inf(factor) else -math.inf if minimum(factor) == -math.inf else math.inf
    place = ops.statistics.trace.edges.get((node, slot))
    is_log = place is not None and ops.op_name(place[0]) in (*LOGARITHMS, "Log1P")
    causes = _check_log(ops, place[0]) if place is not None and is_log else ()
    return -math.inf if any(cause.kind == "inf" for cause in causes) else 0.0


def _explain_masked_softmax(ops: ForwardOps, node: int) -> OpCause | None:
    """A softmax behind a masked_fill whose mask leaves a row nothing, if each such row of the softmax is NaN.

    Numbers of another row may be NaN, too, and what the mask fills in may be a finite number.
    """
    place = ops.statistics.trace.edges.get((node, 0))
    mask = (
        None
        if place is None or ops.op_name(place[0]) != "MaskedFill"
        else ops.statistics.saved_tensor(place[0], "mask")
    )
    hidden = [] if mask is None else list_hidden_rows(mask.tolist())
    made = ops.statistics.saved_tensor(node, "result")
    if not hidden or mask is None or made is None or not _are_nan(made, mask, len(hidden)):
        return None
    text = _("takes the softmax of nothing but -Inf: the mask of masked_fill hides every number of row {rows}")
    return OpCause("nan", join_list([text.format(rows=format_rows(hidden)), _("counted from 0")]), needs_inf=True)


def _are_nan(made: Value, mask: Value, hidden: int) -> bool:
    """Whether a softmax made NaN of each row that a mask hides; of many numbers, as many NaN as these rows have."""
    pairs, size = [*broadcast_pairs(mask, made)], made.shape[-1]
    if not pairs:
        count = math.prod(mask.shape[:-1])
        return made.nan is not None and made.nan * count == hidden * math.prod(made.shape)
    rows = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    return all(math.isnan(number) for row in rows if all(hides for hides, _made in row) for _hides, number in row)


def _check_log(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    value = ops.input_value(node, 0, "self")
    least = -1 if ops.op_name(node) == "Log1P" else 0
    if minimum(value) < least:
        text = _("takes the logarithm of numbers below {least}, the smallest {low}")
        yield OpCause("nan", text.format(least=least, low=format_number(minimum(value), 4)))
    if value is not None and (value.min == least or (least == 0 and value.zero)):
        text = _("takes log1p of -1, the logarithm of 0, which is -Inf")
        yield OpCause("inf", text if least else _("takes the logarithm of 0, which is -Inf"))


def _check_arc(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    """The arc cosine or arc sine of numbers that rounding, or a missing norm, has put beyond 1."""
    value = ops.input_value(node, 0, "self")
    furthest = max((minimum(value), maximum(value)), key=abs)
    if abs(furthest) > 1:
        text = _("takes {function} of numbers beyond 1, the furthest {number}")
        yield OpCause("nan", text.format(function=ops.op_name(node).lower(), number=format_number(furthest, 9)))


def _check_root(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    value = ops.input_value(node, 0, "self")
    if minimum(value) < 0:
        text = _("takes the square root of negative numbers, the smallest {low}")
        yield OpCause("nan", text.format(low=format_number(minimum(value), 4)))
    if value is not None and value.zero and ops.op_name(node) == "Rsqrt":
        yield OpCause("inf", _(_DIVIDES_BY_ZERO))


def _check_reciprocal(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    value = ops.input_value(node, 0, "self")
    if value is not None and value.zero:
        yield OpCause("inf", _(_DIVIDES_BY_ZERO))


def _check_exponential(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    result = ops.statistics.saved_tensor(node, "result")
    if result is not None and holds_inf(result):
        limit = format_number(math.log(largest_number(result.dtype)), 3)
        text = _("takes the exponential of numbers above {largest}, which is too large for {dtype}")
        yield OpCause("inf", text.format(largest=limit, dtype=result.dtype))


def _check_division(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    numerator, denominator = ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")
    for x, y in broadcast_pairs(numerator, denominator):
        if y == 0 or (math.isinf(x) and math.isinf(y)):
            is_nan = x == 0 or y != 0
            text = _INF_BY_INF if y else _ZERO_BY_ZERO if is_nan else _DIVIDES_BY_ZERO
            yield OpCause("nan" if is_nan else "inf", _(text), needs_inf=y != 0)
    if denominator is None or denominator.zero != math.prod(denominator.shape):
        return
    if numerator is not None and numerator.zero and numerator.tolist() is None:  # of many numbers, some are 0
        yield OpCause("nan", _(_ZERO_BY_ZERO))
    if numerator is None or (numerator.zero is not None and numerator.zero < math.prod(numerator.shape)):
        yield OpCause("inf", _(_DIVIDES_BY_ZERO))


def _check_product(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    one, other = ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")
    for x, y in broadcast_pairs(one, other):
        if 0 in (x, y) and (math.isinf(x) or math.isinf(y)):
            yield OpCause("nan", _(_ZERO_TIMES_INF).format(infinite=_format_inf(x if x else y)), needs_inf=True)
        elif one is not None and other is not None and _overflows(x, y, one.dtype, other.dtype):
            text = _(
                "multiplies numbers ({x} and {y}) whose product is beyond {largest}, the largest number of {dtype}"
            )
            factors = {"x": format_number(x, 4), "y": format_number(y, 4)}
            yield OpCause("inf", text.format(largest=format_largest(one.dtype), dtype=one.dtype, **factors))


def _check_sum(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    sign = -1 if ops.op_name(node) == "Sub" else 1
    for x, y in broadcast_pairs(ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")):
        if math.isinf(x) and x == -sign * y:
            text = (_("adds Inf and -Inf") if sign > 0 else _("subtracts {x} from {x}")).format(x=_format_inf(x))
            yield OpCause("nan", text, needs_inf=True)


def _check_power(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    base, exponent = ops.input_value(node, 0, "self"), ops.statistics.saved_number(node, "exponent")
    power = ops.input_value(node, 1, "exponent")
    pairs = broadcast_pairs(base, power)
    if exponent is None and power is not None and power.min == power.max:
        exponent = power.min
    if base is not None and exponent is not None:
        pairs = iter(((minimum(base), exponent), *([(0.0, exponent)] if base.zero else [])))
    for x, y in pairs:
        if x < 0 and math.isfinite(y) and y != int(y):
            text = _("raises a negative number, {low}, to the power {exponent}")
            yield OpCause("nan", text.format(low=format_number(x, 4), exponent=format_number(y)))
        elif x == 0 and y < 0:
            yield OpCause("inf", _("raises 0 to the power {exponent}").format(exponent=format_number(y)))
    if base is not None and exponent == _SQUARE:
        yield from _check_square(largest(base), base.dtype)


def _check_square(most: float, dtype: str) -> Iterator[OpCause]:
    """The square of a finite number that is too large for its dtype."""
    if math.isfinite(most) and most > 1.001 * math.sqrt(largest_number(dtype)):
        text = _("squares numbers up to {most}, which goes beyond {largest}, the largest number of {dtype}")
        numbers = {"most": format_number(most, 4), "largest": format_largest(dtype)}
        yield OpCause("inf", text.format(dtype=dtype, **numbers))


def _check_loss(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    """A mean of no squares, or of squares of differences that are too large."""
    yield from _check_mean(ops, node)
    one, other = ops.input_value(node, 0, "self"), ops.input_value(node, 1, "target")
    if one is not None and other is not None:
        sizes = sorted(map(largest, (one, other)))
        yield from _check_square(sizes[1] - sizes[0], one.dtype)


def _check_softmax(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    value = ops.input_value(node, 0, "self")
    if value is None:
        return
    if value.max == -math.inf or any(
        max(row) == -math.inf for row in rows_along(value, ops.statistics.saved_number(node, "dim"))
    ):
        yield OpCause("nan", _("takes the softmax of numbers that are all -Inf"), needs_inf=True)
    elif value.max == math.inf:
        yield OpCause("nan", _("takes the softmax of numbers with Inf among them"), needs_inf=True)


def _check_mean(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    """A mean, or a loss that is one, of no numbers."""
    is_loss = ops.op_name(node) != "Mean"
    if _count_reduced(ops, node) == 0 and (not is_loss or ops.statistics.saved_number(node, "reduction") == 1):
        yield OpCause("nan", _("takes the mean of no numbers, which is 0 divided by 0"))


def _check_spread(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    count, correction = _count_reduced(ops, node), ops.statistics.saved_number(node, "correction")
    if count is not None and correction is not None and count <= correction:
        text = _("divides by {count} - {correction}: the spread of {numbers}, with a correction of {correction}")
        numbers = pluralize(count, _("{count} number"), _("{count} numbers"))
        yield OpCause("nan", text.format(count=count, numbers=numbers, correction=format_number(correction)))


def _count_reduced(ops: ForwardOps, node: int) -> int | None:
    """How many numbers a reduction combines into one; None if that is not known."""
    sizes, dims = (ops.statistics.saved_setting(node, name) for name in ("self_sym_sizes", "dim"))
    given = ops.statistics.saved_tensor(node, "self")
    shape: tuple[int, ...] | None = sizes if isinstance(sizes, tuple) else None if given is None else given.shape
    if shape is None:
        return None
    reduced = dims if dims and isinstance(dims, tuple) else range(len(shape))
    return math.prod(shape[dim] for dim in reduced if -len(shape) <= dim < len(shape))


def _check_labels(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    """The mean over labels of which each is left out, or has the weight 0."""
    total = ops.statistics.saved_tensor(node, "total_weight")
    if total is None or total.max != 0 or ops.statistics.saved_number(node, "reduction") != 1:
        return
    labels, ignored = ops.statistics.saved_tensor(node, "target"), ops.statistics.saved_number(node, "ignore_index")
    if labels is not None and ignored is not None and labels.min == labels.max == ignored:
        text = _("takes the mean over no label: each of them is {label}, which is ignored (ignore_index)")
        yield OpCause("nan", text.format(label=format_number(ignored)))
    else:
        yield OpCause(
            "nan", _("takes the mean over labels whose weights add up to 0, or which are ignored (ignore_index)")
        )


def _check_cast(ops: ForwardOps, node: int) -> Iterator[OpCause]:
    value = ops.input_value(node, 0, "self")
    magnitude = largest(value)
    if ops.nodes == [node] and math.isfinite(magnitude) and _exceeds(magnitude, ops.dtype):
        text = _("turns {far} into {dtype}, whose largest number is {largest}")
        names = {"largest": format_largest(ops.dtype), "dtype": ops.dtype, "far": format_number(magnitude)}
        yield OpCause("inf", text.format(**names))


_CHECKS: dict[str, Callable[[ForwardOps, int], Iterator[OpCause]]] = {
    **dict.fromkeys((*LOGARITHMS, "Log1P"), _check_log),
    **dict.fromkeys(("Acos", "Asin"), _check_arc),
    **dict.fromkeys(("Sqrt", "Rsqrt"), _check_root),
    **dict.fromkeys(("Add", "Sub"), _check_sum),
    **dict.fromkeys(SOFTMAXES, _check_softmax),
    **dict.fromkeys(("Mean", "L1Loss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy"), _check_mean),
    **dict.fromkeys(("Std", "Var"), _check_spread),
    **dict.fromkeys(("NllLoss", "NllLoss2D"), _check_labels),
    "MseLoss": _check_loss,
    "ToCopy": _check_cast,
    "Reciprocal": _check_reciprocal,
    "Exp": _check_exponential,
    "Div": _check_division,
    "Mul": _check_product,
    "Pow": _check_power,
}
"""Op → the check whether its inputs or its result show that it made NaN or Inf."""


def format_largest(dtype: str) -> str:
    return f"{largest_number(dtype):,.6g}"


def _exceeds(x: float, *dtypes: str) -> bool:
    """Whether a number is too large for all of these dtypes, by more than rounding can explain."""
    return all(abs(x) > 1.001 * largest_number(dtype) for dtype in dtypes)


def _overflows(x: float, y: float, *dtypes: str) -> bool:
    """Whether the product of two finite numbers is too large for all of these dtypes."""
    return _exceeds(x * y, *dtypes) and math.isfinite(x) and math.isfinite(y)


def _format_inf(x: float) -> str:
    return "Inf" if x > 0 else "-Inf"


def holds_inf(value: Value) -> bool:
    return get_norm_nan_inf(value.row)[2] > 0


def contains_kind(value: Value | None, kind: str) -> bool:
    """Whether a value is known and contains NaN or Inf, as ``kind`` says."""
    return value is not None and bool(get_norm_nan_inf(value.row)[1] if kind == "nan" else holds_inf(value))


def largest(value: Value | None) -> float:
    """The largest absolute number of a tensor; NaN if it is not known."""
    return max(abs(minimum(value)), abs(maximum(value)))


def minimum(value: Value | None) -> float:
    """The smallest number of a tensor; NaN if it is not known."""
    return math.nan if value is None or value.min is None else value.min


def maximum(value: Value | None) -> float:
    """The largest number of a tensor; NaN if it is not known."""
    return math.nan if value is None or value.max is None else value.max
