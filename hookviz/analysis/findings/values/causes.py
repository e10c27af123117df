"""Explain why a module returned NaN or Inf, using only causes that the recorded numbers show."""

import math
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.ops import VIEWS, get_op
from hookviz.analysis.findings.parameters.call_code import CallCode
from hookviz.analysis.findings.values.op_causes import (
    ForwardOps,
    contains_kind,
    explain_by_statistics,
    format_largest,
    holds_inf,
    maximum,
    minimum,
)
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.analysis.findings.values.suspects import find_inf
from hookviz.analysis.findings.values.torchless_numbers import format_rows, largest_number, list_hidden_rows
from hookviz.support.messages import _, join_sentences
from hookviz.trace import NodeOutput, TensorRow
from hookviz.trace.values import Value, format_number

_ATTENTION = "MultiheadAttention"
_MASKS = ("key_padding_mask", "attn_mask")


def explain_cause(statistics: PassStatistics, index: int, before: Any, kind: str) -> tuple[str, bool]:
    """Explain why the forward at step ``index`` returned NaN or Inf although its input, ``before``, had none.

    The search covers: the parameters of the module; its ops in the order of the forward, with the numbers that they
    saved for backward or received as the only input of the module; sums and products of finite numbers that exceed the
    largest number of the dtype.

    Returns:
        The explanation in words, and whether the recorded numbers show the cause.
    """
    call = statistics.trace.rows[index].own_call
    made = statistics.trace.lookup.nodes_by_call.get(call, ())
    nodes = sorted(node for node in made if statistics.trace.ops[node] != "AccumulateGrad")
    parameters = _list_parameter_rows(statistics, call)
    for row in parameters:
        if statistics.is_nonfinite(row.data):
            return _explain_parameter(statistics, index, row), True
    spoiled = _list_spoiled(statistics, call)
    if kind == "nan" and "nan" in spoiled.values():
        return _("its own {on} held NaN.").format(
            on=next(name for name, held in spoiled.items() if held == "nan")
        ), True
    masked = _explain_mask(statistics, index) if kind == "nan" else ""
    if masked:
        return masked, True
    inputs = [value for value in statistics.values(before) if value.note is None]
    ops = _make_call_ops(statistics, call, nodes, inputs, parameters)
    cause = _describe_known_cause(ops, kind)
    if cause is None and kind == "inf" and _is_overflow(statistics, call, nodes, inputs, parameters):
        outputs = statistics.values(statistics.trace.rows[index].after)
        cause = _describe_overflow(next(value.dtype for value in outputs if holds_inf(value)))
    if cause is not None:
        return cause, True
    seen = [node for node in nodes if contains_kind(ops.statistics.saved_tensor(node, "result"), kind)]
    culprits = [node for node in seen if not ops.is_masked(node)]
    shown = explain_by_statistics(ops, culprits[0], kind) if culprits else None
    if shown is not None:
        return _("it {cause}.").format(cause=shown.text), True
    text = _describe_input(inputs, any(not _is_known_finite(statistics, row.data) for row in parameters))
    more = [
        _("The first op known to have produced it is {op}.").format(op=statistics.describe_node(node))
        for node in culprits[:1]
    ]
    more += [_("Its own {on} held {what}.").format(on=on, what=name_of_kind(held)) for on, held in spoiled.items()]
    return join_sentences([text, *more]), False


def _list_spoiled(statistics: PassStatistics, call: int) -> dict[str, str]:
    """Parameter or buffer of a module → ``nan`` or ``inf``, which it contains; one with Inf may be a mask."""
    module = statistics.trace.calls[call].module
    rows = (row for row in statistics.trace.nonfinite if row.module == module and row.call <= call)
    return {f"{statistics.trace.module(module)}.{row.name}": row.kind for row in rows}


def _make_call_ops(
    statistics: PassStatistics, call: int, nodes: list[int], inputs: list[Value], parameters: list[TensorRow]
) -> ForwardOps:
    """The ops of a module call, with its parameters and its input as known tensors.

    The input is known if the module has one, and its ops use nothing else from outside.
    """
    known = {(row.node, row.output): statistics.value(row.data) for row in parameters if row.data is not None}
    inside = set(nodes)
    following = statistics.trace.lookup.next_nodes
    outgoing = ((node, slot) for node in nodes for slot, end in following.get(node, ()) if end not in inside)
    outside: set[NodeOutput] = {statistics.trace.edges[edge] for edge in outgoing} - known.keys()
    has_one_input = len(outside) == 1 and len(inputs) == 1
    # A value that was made inside this call, by a module inside this one, is not its input.
    if has_one_input and call not in statistics.enclosing_calls(next(iter(outside))[0]):
        known |= dict.fromkeys(outside, inputs[0])
    dtype = next((value.dtype for value in _outputs_of(statistics, call)), "")
    return ForwardOps(statistics, nodes, known, dtype)


def _describe_known_cause(ops: ForwardOps, kind: str) -> str | None:
    """Describe the first cause that the numbers of the ops show; if it needs an Inf, also where that came from."""
    first = ops.find_cause(kind)
    if first is None:
        return None
    origin = find_inf(ops, *first)
    more = [] if origin is None else [_("The Inf arises where it {cause}.").format(cause=origin[1].text)]
    return join_sentences([_("it {cause}.").format(cause=first[1].text), *more])


def _describe_input(inputs: list[Value], has_unread_parameters: bool) -> str:
    """Describe the range of the input of a module whose NaN or Inf has no known cause."""
    if any(value.min is None for value in inputs):
        return _(
            "its input held none; the cause was not seen: only the norm of the input was read. "
            'record(statistics="all") reads more.'
        )
    known = [value for value in inputs if not math.isnan(minimum(value))]
    if not known:
        return _("the cause was not seen.")
    low, high = format_number(min(map(minimum, known)), 4), format_number(max(map(maximum, known)), 4)
    text = _("its input held none (minimum {low}, maximum {high}); the cause was not seen.")
    more = [_("Not all numbers of its parameters were read.")] if has_unread_parameters else []
    return join_sentences([text.format(low=low, high=high), *more])


def _list_parameter_rows(statistics: PassStatistics, call: int) -> list[TensorRow]:
    """The parameters of a module, and of the modules inside it that it uses without calling them."""
    module = statistics.trace.calls[call].module
    calls, prefix = statistics.trace.calls, f"{statistics.trace.module(module)}."

    def belongs(row: TensorRow) -> bool:
        owner = statistics.trace.owners.get(row.node)
        return calls[owner].module == module if owner is not None else row.name.startswith(prefix)

    return [row for row in statistics.tensors if row.leaf and belongs(row)]


def _explain_parameter(statistics: PassStatistics, index: int, row: TensorRow) -> str:
    """Explain that a parameter contained NaN or Inf before the pass, and what may have put it there."""
    names = _name_held(statistics, row)
    earlier = statistics.trace.lookup.tensors_before(statistics.pass_id, row.node)
    if not earlier or not _is_known_finite(statistics, earlier[-1].data):
        return _("its parameter {on} held {what} before backward began.").format(**names)
    last = _find_last_step(statistics, row, earlier[-1].pass_id, index)
    text = _("its parameter {on} held {what} before backward began, but not when the previous recorded pass began.")
    return join_sentences([text.format(**names), *_tell_change(statistics, row, earlier[-1].pass_id, last)])


def _tell_change(statistics: PassStatistics, row: TensorRow, since: int, last: int | None) -> Iterator[str]:
    """Say what may have put NaN or Inf into a parameter since a pass: a step of an optimizer, or another pass."""
    if last is None:
        return
    is_spoiled = _had_nonfinite_gradient(statistics, row, since, last)
    notes = statistics.trace.remarks
    every = next((dict(note.details)["every"] for note in notes if note.fact == "every"), None)
    if every is not None and not is_spoiled:
        text = _("In between, passes ran that were not recorded: record(every={every}) records one of {every}.")
        yield text.format(every=every)
        return
    text = _("In between, {optimizer} took its step ({step}).")
    yield text.format(step=last + 1, optimizer=statistics.trace.steps[last].on)
    if is_spoiled:
        yield _("The gradient of {on} held NaN or Inf then.").format(on=row.name)


def _name_held(statistics: PassStatistics, row: TensorRow) -> dict[str, str]:
    """Name a parameter, and what it held: where it held Inf, a module may return NaN."""
    has_nan = row.data is not None and contains_kind(statistics.value(row.data), "nan")
    return {"on": row.name, "what": name_of_kind("nan" if has_nan else "inf")}


def _find_last_step(statistics: PassStatistics, row: TensorRow, since: int, index: int) -> int | None:
    """Return the last step of an optimizer that holds a parameter, between the begin of pass ``since`` and a step.

    Of a tensor without a name in a module it is not known which optimizer holds it: then it may be any.
    """
    trace = statistics.trace
    known = [one for one in trace.parameters if row.name in one.names]
    holders = {optimizer for one in known for optimizer in one.optimizers}
    if known and not holders:
        return None
    first = next((i for i in trace.lookup.steps(since) if trace.rows[i].kind == "seed"), 0)
    steps = trace.lookup.steps_of_kinds("optimizer_step")
    between = ((i, trace.rows[i]) for i in steps[bisect_left(steps, first) : bisect_left(steps, index)])
    taken = (i for i, step in between if step.pass_id >= since and (step.optimizer in holders or not holders))
    return max(taken, default=None)


def _had_nonfinite_gradient(statistics: PassStatistics, row: TensorRow, since: int, step: int) -> bool:
    """Whether the last gradient of a parameter before ``step`` contains NaN or Inf and is not from before ``since``."""
    accumulations = (
        earlier
        for earlier in map(statistics.trace.rows.__getitem__, range(step - 1, -1, -1))
        if earlier.node == row.node
        and earlier.kind in ("accumulate", "post_accumulate_hook")
        and earlier.subject == "gradient"
    )
    last = next(accumulations, None)
    return last is not None and last.pass_id >= since and statistics.is_nonfinite(last.after)


def _is_known_finite(statistics: PassStatistics, index: int | None) -> bool:
    """Whether the numbers of a value are known and contain neither NaN nor Inf."""
    return index is not None and statistics.value(index).note is None and not statistics.is_nonfinite(index)


def _outputs_of(statistics: PassStatistics, call: int) -> Iterator[Value]:
    """The values that the forward of a module call returned."""
    rows = (row for _ignored, row in statistics.rows if row.kind == "forward" and row.call == call)
    yield from (value for row in rows for value in statistics.values(row.after))


# -- numbers that grow too large


_LINEAR_OPS = {"Addmm", "Mm", "Convolution", "MkldnnConvolution", "ToCopy", *VIEWS}


def _is_overflow(
    statistics: PassStatistics, call: int, nodes: list[int], inputs: list[Value], parameters: list[TensorRow]
) -> bool:
    """Whether a linear layer has finite inputs and parameters, so that its sums of products must have overflowed.

    In a smaller dtype, to which they are cast, they may be infinite themselves.
    """
    is_layer = statistics.is_linear(call)
    only_linear = {get_op(statistics.trace, node) for node in nodes} <= _LINEAR_OPS
    has_weight = any(row.name.endswith(".weight") for row in parameters)
    is_finite = all(_is_known_finite(statistics, row.data) for row in parameters) and not any(map(holds_inf, inputs))
    given = [*inputs, *(statistics.value(row.data) for row in parameters if row.data is not None)]
    limits = [largest_number(value.dtype) for value in _outputs_of(statistics, call)]
    sizes = (max(maximum(value), -minimum(value)) for value in given)
    fits = bool(limits) and all(size <= min(limits) for size in sizes)
    return is_layer and only_linear and has_weight and bool(inputs) and is_finite and fits


def _describe_overflow(dtype: str) -> str:
    return _(
        "its sums of products go beyond {largest}, the largest number of {dtype}, though its input "
        "and its parameters are finite."
    ).format(largest=format_largest(dtype), dtype=dtype)


# -- masks of an attention


def _explain_mask(statistics: PassStatistics, index: int) -> str:
    """Explain that a mask of an attention hides all keys in some of its rows; empty if the numbers show none.

    ``index`` is the step at which the forward returned. True hides a key, and so does -Inf in a mask of numbers.
    """
    rows, call = statistics.trace.rows, statistics.trace.rows[index].own_call
    module = statistics.trace.calls[call].module
    is_own = CallCode(statistics.trace).find_forward(module) is not None  # a class of the program, with the same name
    if statistics.trace.modules[module].kind != _ATTENTION or is_own:
        return ""
    begin = next((step for step in range(index, -1, -1) if rows[step].kind == "call" and rows[step].call == call), None)
    given = None if begin is None else rows[begin].after
    if begin is None or not isinstance(given, tuple) or "query" not in rows[begin].labels[1]:
        return ""
    for name, value in zip(rows[begin].labels[1], given, strict=False):
        hidden = list_hidden_rows(statistics.value(value).tolist()) if name in _MASKS and value is not None else []
        if hidden:
            text = _("its {mask} hides every key in row {rows}, counted from 0: a softmax over -Inf alone is NaN.")
            return text.format(mask=name, rows=format_rows(hidden))
    return ""
