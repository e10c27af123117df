"""Say of NaN or Inf that a forward was given, and that no op of its graph made: in which input, and where in it."""

import math
from collections.abc import Iterator

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.ops import VIEWS
from hookviz.analysis.findings.values.op_causes import ForwardOps, contains_kind
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.analysis.findings.values.suspects import SAVED_INPUTS
from hookviz.analysis.findings.values.torchless_numbers import format_rows
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import NodeOutput, StepRow
from hookviz.trace.values import Value, as_tuple, get_norm_nan_inf

CHECK_DATA = N_("Check the data, and the code that prepares it.")
_TABLE = 2
"""The dimensions of a table with rows and columns."""
_SUMS = ("Add", "Sub")
_KEEPING = (
    *("Add", "Sub", "Mul", "Div", "Neg", "Pow", "Exp", "Relu", "Tanh", "Sigmoid", "Sum", "Mean", "Mm", "Addmm"),
    *(*VIEWS, "Expand"),
)
"""The ops whose result holds NaN if an input does."""


def find_entry(ops: ForwardOps, node: int, kind: str) -> tuple[int, str] | None:
    """Return the op by which an input without a graph brought ``kind``, ``nan`` or ``inf``, to an op, and say so.

    The op saved that input. Or it adds two inputs of which the one with a graph is finite: NaN is of the other.
    """
    for place in _list_sources(ops, node) if kind == "nan" else [node]:
        names = {"what": name_of_kind(kind), "on": ops.statistics.describe_node(place)}
        given = _find_given(ops, place, kind)
        if given is not None:
            text = _("{what} enters the graph at {on}: its input {name} held it, and does not require grad.")
            return place, join_sentences([text.format(name=given[0], **names), _locate(*given)])
        if kind == "nan" and place == node and _adds_to_finite(ops, node):
            text = _(
                "{what} enters the graph at {on}: its input with a graph was finite, so its other input held it, which "
                "does not require grad."
            )
            return place, text.format(**names)
    return None


def _list_sources(ops: ForwardOps, node: int) -> list[int]:
    """List an op that made NaN, and those before it of whose NaN it would have made NaN, the nearest first."""
    found, edges = [node], ops.statistics.trace.edges
    for one in found:
        slots = ops.statistics.trace.lookup.next_nodes.get(one, ()) if ops.op_name(one) in _KEEPING else ()
        ends = dict.fromkeys(edges[one, slot][0] for slot, _ignored in slots)
        found += [end for end in ends if end not in found and not ops.knows(end)]
    return found


def _find_given(ops: ForwardOps, node: int, kind: str) -> tuple[str, Value] | None:
    """Return the name and value of an input of an op that holds ``kind`` and does not require grad."""
    for (op, name), slot in SAVED_INPUTS.items():
        if op == ops.op_name(node) and (node, slot) not in ops.statistics.trace.edges:
            value = ops.statistics.saved_tensor(node, name)
            if value is not None and value.note is None and contains_kind(value, kind):
                return name, value
    return None


def describe_given(ops: ForwardOps, node: int) -> str:
    """Say which input without a graph brought the Inf of which an op made NaN; empty if none is known to."""
    given = _find_given(ops, node, "inf")
    text = _("Its input {name} held the Inf, and does not require grad.")
    return "" if given is None else join_sentences([text.format(name=given[0]), _locate(*given)])


def _adds_to_finite(ops: ForwardOps, node: int) -> bool:
    """Whether an op adds or subtracts two inputs, of which the only one with a graph is known to be finite."""
    places = [ops.statistics.trace.edges.get((node, slot)) for slot in (0, 1)]
    known = [_find_made(ops, place) for place in places if place is not None]
    value = known[0] if len(known) == 1 and ops.op_name(node) in _SUMS else None
    return value is not None and value.note is None and get_norm_nan_inf(value.row)[1:] == (0, 0)


def _find_made(ops: ForwardOps, place: NodeOutput) -> Value | None:
    """What an op made, if it is known from the graph or is all that a module returned."""
    part = ops.statistics.trace.returned.get(place)
    index = None if part is None else ops.statistics.find_only("forward", part.call)
    known = ops.known_value(place)
    return known if known is not None or index is None else ops.statistics.value(index)


def describe_arguments(statistics: PassStatistics, row: StepRow) -> Iterator[str]:
    """Yield a sentence for each argument of a module call, or part of one, that holds NaN or Inf."""
    for name, index in zip(row.labels[1], as_tuple(row.after), strict=True):
        if statistics.is_nonfinite(index):
            yield _locate(name, statistics.value(index))


def _locate(name: str, value: Value) -> str:
    """Say how many numbers of a tensor are NaN or Inf, if they were counted, and in which rows and columns."""
    names = {"name": name, "total": f"{math.prod(value.shape):,}"}
    if math.prod(value.shape) == 1:
        return _("{name} is a single number.").format(**names)
    if value.nan is None or value.inf is None:
        return _("{name} has {total} numbers.").format(**names)
    text = _("{name} holds NaN or Inf in {count} of its {total} numbers.")
    return join_sentences([text.format(count=f"{value.nan + value.inf:,}", **names), *_find_cells(value)])


def _find_cells(value: Value) -> Iterator[str]:
    """Yield the sentence on the rows and columns of what is NaN or Inf in a small table."""
    numbers = value.tolist()
    if numbers is None or len(value.shape) != _TABLE:
        return
    bad = [
        (row, column)
        for row, cells in enumerate(numbers)
        for column, cell in enumerate(cells)
        if not math.isfinite(abs(cell))
    ]
    rows, columns = (sorted({place[dim] for place in bad}) for dim in (0, 1))
    text = _("These are in row {rows} and column {columns}, counted from 0.")
    yield text.format(rows=format_rows(rows), columns=format_rows(columns))
