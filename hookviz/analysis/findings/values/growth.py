"""Numbers that grew before they became Inf: over the ops of one forward, or the losses of several passes."""

import math
from collections.abc import Iterator, Sequence

from hookviz.analysis.findings.values.op_causes import ForwardOps
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.values import Value, format_number

FEWEST_OPS = 5
FACTOR_OF_OPS = 1e6
"""The numbers of a forward grew if each of so many ops made larger ones than the one before, by this factor in all."""
FEWEST_PASSES = 2
FACTOR_OF_PASSES = 1e3
"""The same for the losses of passes."""


def describe_growing_ops(ops: ForwardOps, node: int) -> Iterator[str]:
    """Say by how much the results of equal ops in one module call grew, up to an op that made NaN or Inf."""
    owners = ops.statistics.trace.owners
    alike = [one for one in ops.nodes if one <= node and ops.op_name(one) == ops.op_name(node)]
    sizes = [_find_size(ops.known_value((one, 0))) for one in alike if owners.get(one) == owners.get(node)]
    known = [size for size in sizes if size is not None]
    run = _find_rise([size for size in known if size < math.inf])
    if len(run) >= FEWEST_OPS and run[-1] >= FACTOR_OF_OPS * run[0] > 0:
        rate = (run[-1] / run[0]) ** (1 / (len(run) - 1))
        text = _(
            "Over {count} ops {op} of this forward the largest number grew from {first} to {last}, about ×{rate} from "
            "each to the next."
        )
        ends = {"first": format_number(run[0], 3), "last": format_number(run[-1], 3)}
        yield text.format(count=f"{len(run):,}", op=ops.statistics.trace.ops[node], rate=format_number(rate, 3), **ends)


def describe_growing_loss(trace: TraceData, pass_id: int) -> str:
    """Say by how much the loss grew over the passes before one that holds NaN or Inf; empty if it did not."""
    losses: list[float] = []
    for earlier in reversed(range(pass_id)):  # of passes with NaN in a row, only the first looks further than one back
        loss = trace.losses.get(earlier)
        if loss is None:
            return ""
        losses.append(loss)
    run = _find_rise(losses[::-1])
    if len(run) < FEWEST_PASSES or not run[-1] >= FACTOR_OF_PASSES * run[0] > 0:
        return ""
    text = _(
        "Before that, the loss rose from {first} to {last} over {count} passes: the steps of the optimizer are too "
        "large. Try a smaller learning rate, or data and targets of the size of 1."
    )
    ends = {"first": format_number(run[0], 3), "last": format_number(run[-1], 3)}
    return text.format(count=f"{len(run):,}", **ends)


def _find_rise(numbers: Sequence[float]) -> list[float]:
    """Return the last numbers of a sequence, as far as each is larger than the one before it."""
    start = len(numbers) - 1
    while start > 0 and numbers[start - 1] < numbers[start]:
        start -= 1
    return list(numbers[max(start, 0) :])


def _find_size(value: Value | None) -> float | None:
    """Return the largest absolute number of a tensor; Inf if it holds NaN or Inf, None if it is not known."""
    if value is None or value.min is None or value.max is None:
        return None
    return max(abs(value.min), abs(value.max)) if math.isfinite(value.max - value.min) else math.inf
