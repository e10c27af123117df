"""Find the step where NaN or Inf begins: in a module's forward, in a tensor of the graph, or in a gradient."""

import math
from collections.abc import Callable, Iterator
from typing import Any

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.values.backward_causes import explain_backward
from hookviz.analysis.findings.values.causes import explain_cause
from hookviz.analysis.findings.values.forward_origin import describe_growing_loss, find_forward_origin, find_given_inf
from hookviz.analysis.findings.values.given_values import CHECK_DATA, describe_arguments
from hookviz.analysis.findings.values.half_precision import advise_on_overflow
from hookviz.analysis.findings.values.op_causes import holds_inf
from hookviz.analysis.findings.values.pass_statistics import CHANGING_KINDS, FORWARD_KINDS, PassFinding, PassStatistics
from hookviz.analysis.findings.values.suspects import Suspects, find_suspects
from hookviz.support.messages import N_, _, join_sentences
from hookviz.trace import StepRow, TensorRow
from hookviz.trace.sentences import format_values
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS
from hookviz.trace.values import as_tuple

_BEGINS_HERE = N_("{what} begins here: {sentence}")


_GRADIENT_KINDS = {"seed", "arrive", "compute", "aliased", "accumulate", *CHANGING_KINDS}
"""The kinds of step in which a gradient is passed on, changed or accumulated."""


def find_nonfinite(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find where NaN or Inf begins, whether the loss grew before, and what to do if it is the range of float16."""
    for finding in _find_begins(statistics):
        growth = describe_growing_loss(statistics.trace, statistics.pass_id)
        sentence = join_sentences([finding.sentence, growth])
        advice = _(CHECK_DATA) if finding.is_given else advise_on_overflow(statistics, finding)
        yield finding._replace(sentence=sentence, advice=advice)


def _find_begins(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find the first step of the forward, and the first of the backward, with NaN or Inf that was not in its input.

    In the forward, Inf counts only if an output of the model is NaN or infinite: masks are infinite by design. The
    backward is searched only if the forward did not pass on its NaN or Inf. In a pass that a GradScaler scales,
    overflowing gradients are a remark, because the GradScaler skips the optimizer step; so is a loss that overflowed
    when it scaled it, if it did skip the step, or no gradient overflowed.
    """
    outputs = _find_in_outputs(statistics)
    only_masks = not _has_more_than_masks(statistics, outputs) or _is_left_out(statistics)
    is_scaled = bool(statistics.scales)
    severity = "remark" if only_masks else "warning"
    starts = [statistics.find_new_kind(None, row.data) for row in statistics.root_tensors]
    if _reaches_leaves(statistics) or "nan" in starts:
        severity = "warning" if is_scaled else "error"
    forward = _find_in_forward(statistics)
    if forward is not None:
        is_origin = bool(outputs) and (forward.seen or not only_masks)
        yield forward._replace(severity=severity if is_origin else "remark")
        if is_origin:
            return
    backward, tensor = _find_in_backward(statistics), _find_in_tensors(statistics)
    if tensor is not None and (backward is not None or tensor.kind == "nan" or not only_masks):
        yield tensor._replace(severity="remark" if _is_harmless_overflow(statistics, tensor) else severity)
    elif backward is not None:
        yield backward._replace(severity="remark" if is_scaled else _raise_to_warning(statistics, severity))


def _raise_to_warning(statistics: PassStatistics, severity: str) -> str:
    """Raise a remark on a gradient to a warning, unless a hook removes the NaN or Inf.

    NaN or Inf in a gradient is rarely intended, even if it reaches no leaf.
    """
    changes = (row for _ignored, row in statistics.rows if row.kind in CHANGING_KINDS)
    removed = (statistics.is_nonfinite(row.before) and not statistics.is_nonfinite(row.after) for row in changes)
    return "warning" if severity == "remark" and not any(removed) else severity


def _is_harmless_overflow(statistics: PassStatistics, found: PassFinding) -> bool:
    """Whether the loss overflowed where a GradScaler scaled it, and no gradient did, or it skipped the next step."""
    trace = statistics.trace
    node = trace.rows[found.step].node
    if not any(node in scale.at for scale in statistics.scales):
        return False
    if not _reaches_leaves(statistics):
        return True
    later = (row for row in map(trace.rows.__getitem__, trace.lookup.steps_of_kinds("unscale", "optimizer_step")))
    following = next((row for row in later if row.pass_id >= statistics.pass_id), None)
    return following is not None and following.kind == "unscale" and following.found_inf


def _reaches_leaves(statistics: PassStatistics) -> bool:
    """Whether the pass puts NaN or Inf into the gradient of a leaf, where it still is when the pass ends."""
    last: dict[int, bool] = {}
    for _ignored, row in statistics.rows:
        if row.kind == "returned" or (row.kind == "post_accumulate_hook" and row.subject == "gradient"):
            last[row.own_node] = statistics.is_nonfinite(row.after)
        elif row.kind == "accumulate":
            last[row.own_node] = statistics.is_nonfinite(row.after) and not statistics.is_nonfinite(row.before)
    return any(last.values())


def _is_left_out(statistics: PassStatistics) -> bool:
    """Whether the loss is a finite number and so is each gradient: it leaves out what is NaN or Inf on purpose."""
    gradients = (row for _ignored, row in statistics.rows if row.subject == "gradient" and row.kind in _GRADIENT_KINDS)
    is_finite = statistics.trace.losses.get(statistics.pass_id) is not None
    return is_finite and not any(statistics.is_nonfinite(row.after) for row in gradients)


def _find_in_outputs(statistics: PassStatistics) -> list[int]:
    """The indices of the values with NaN or Inf that a model returned, or at which the pass began."""
    forwards = (
        row for _ignored, row in statistics.rows if row.kind in ("forward", "forward_hook") and row.call is not None
    )
    last = {row.own_call: row.after for row in forwards}
    outputs = [values for call, values in last.items() if statistics.trace.calls[call].parent is None]
    outputs += [row.data for row in statistics.root_tensors]
    indices = (index for values in outputs for index in as_tuple(values))
    return [index for index in indices if statistics.is_nonfinite(index)]


def _has_more_than_masks(statistics: PassStatistics, indices: list[int]) -> bool:
    """Whether values contain NaN or +Inf; -Inf alone may be a mask that a model returns."""
    return any(value.nan or value.max == math.inf for value in map(statistics.value, indices))


def find_harmless_nonfinite(statistics: PassStatistics) -> PassFinding | None:
    """Find the first step with NaN or Inf, for a pass in which they reached no leaf and no output of a model."""
    for index, row in statistics.rows:
        if _holds_more_than_masks(statistics, row):
            values = row.after if statistics.is_nonfinite(row.after) else row.before
            kind = statistics.find_new_kind(None, values) or "nan"
            what, step = name_of_kind(kind), statistics.trace.steps[index]
            is_old_grad = row.kind == "accumulate" and statistics.is_nonfinite(row.before)
            text = (
                N_("{on}.grad held {what} before this pass, which adds a finite gradient to it.")
                if is_old_grad
                else N_(
                    "{what} appears in a step but reaches no gradient of a leaf and no output of a model: {sentence}"
                )
            )
            return PassFinding(index, kind, _(text).format(what=what, on=step.on, sentence=step.sentence), "remark")
    return None


def _holds_more_than_masks(statistics: PassStatistics, row: StepRow) -> bool:
    """Whether a step has NaN or Inf, and not only an input of a module with -Inf, as a mask has it."""
    if row.kind != "call":
        return statistics.is_nonfinite(row.before) or statistics.is_nonfinite(row.after)
    return _has_more_than_masks(statistics, [one for one in as_tuple(row.after) if statistics.is_nonfinite(one)])


def _find_in_forward(statistics: PassStatistics) -> PassFinding | None:
    """Find the first module call or forward hook that adds NaN to the values it is given, or a harmful Inf."""
    inputs: dict[int, Any] = {}
    calls = [(index, row) for index, row in statistics.rows if row.kind in FORWARD_KINDS and row.call is not None]
    outermost = (
        row for _ignored, row in calls if row.kind == "forward" and statistics.trace.calls[row.own_call].parent is None
    )
    output_is_nonfinite = any(statistics.is_nonfinite(row.after) for row in outermost)
    for index, row in calls:
        before = inputs.get(row.own_call) if row.kind == "forward" else row.before
        if row.kind in ("call", "forward_pre_hook"):
            inputs[row.own_call] = row.after
        kind = statistics.find_new_kind(before, row.after)
        if kind == "nan" or (kind == "inf" and output_is_nonfinite and row.kind != "call"):
            return _make_call_finding(statistics, index, row, before, kind)
    return None


def _make_call_finding(statistics: PassStatistics, index: int, row: StepRow, before: Any, kind: str) -> PassFinding:
    module, what = statistics.describe_module(row.own_call), name_of_kind(kind)
    if row.kind == "call":
        return _make_called_finding(statistics, index, row, kind)
    if row.kind != "forward":
        return PassFinding(
            index, kind, _(_BEGINS_HERE).format(what=what, sentence=statistics.trace.steps[index].sentence)
        )
    cause, seen = explain_cause(statistics, index, before, kind)
    sentence = _("{module} returns {what}: {why}").format(module=module, what=what, why=cause)
    bare = _("{module} returns {what}.").format(module=module, what=what)
    origin = find_forward_origin(statistics, kind)
    nodes = () if origin is None else origin.nodes
    made_by = None if origin is None else statistics.trace.owners.get(statistics.trace.rows[origin.step].own_node)
    if origin is not None and nodes and made_by == row.own_call:
        if not seen and origin.seen:
            sentence, seen = join_sentences([bare, origin.sentence]), True
        suspects = Suspects() if seen else find_suspects(statistics, row.own_call, max(nodes), kind)
        text = join_sentences([sentence, *suspects.sentences])
        return PassFinding(index, kind, text, seen=seen, nodes=(*suspects.places, *nodes))
    if not seen and kind == "nan" and any(map(holds_inf, statistics.values(before))):
        given = find_given_inf(statistics, row.own_call)
        text = join_sentences([bare, _("Its input held Inf, and a sum of Inf and -Inf is NaN, as 0 times Inf is.")])
        brought = () if given.are_explained else _describe_given_inf(statistics)
        return PassFinding(index, kind, join_sentences([text, *given.sentences, *brought]), nodes=given.places)
    suspects = Suspects() if seen else find_suspects(statistics, row.own_call, len(statistics.trace.ops), kind)
    text = join_sentences([bare if suspects.are_explained else sentence, *suspects.sentences])
    return PassFinding(index, kind, text, seen=seen or suspects.are_explained, nodes=suspects.places)


def _make_called_finding(statistics: PassStatistics, index: int, row: StepRow, kind: str) -> PassFinding:
    """Make the finding of a module that is called with NaN or Inf, which code outside of modules made."""
    call = statistics.trace.calls[row.own_call]
    names = {"module": statistics.describe_module(row.own_call), "what": name_of_kind(kind)}
    is_without_graph = call.takes_grad is False
    is_given = is_without_graph and call.parent is None
    text = _("{module} is called with {what}.")
    if not is_given:
        text = _("{module} is called with {what}, although no module recorded before it returned any.")
    sentences = [text.format(**names), *describe_arguments(statistics, row)]
    origin = find_forward_origin(statistics, kind)
    if is_without_graph:
        sentences.append(_("No input requires grad: it did not come through the graph."))
    if origin is not None and origin.is_given and not is_without_graph:
        return origin
    is_earlier = origin is not None and (origin.seen or origin.nodes[0] < _find_first_node(statistics, row))
    if origin is not None and is_earlier and not origin.is_given:
        return PassFinding(index, kind, join_sentences([*sentences, origin.sentence]), nodes=origin.nodes)
    if is_without_graph:
        return PassFinding(index, kind, join_sentences(sentences), is_open=not is_given, is_given=is_given)
    suspects = find_suspects(statistics, call.parent, _find_first_node(statistics, row), kind)
    leaves = [one for one in statistics.tensors if one.leaf and statistics.find_new_kind(None, one.data) == kind]
    more = list(suspects.sentences) or [_describe_held(statistics, one, kind) for one in leaves]
    sizes = [math.prod(value.shape) for value in statistics.values(row.after)]
    if not more and max(sizes, default=0) > MAX_KEPT_NUMBERS:
        text = _("What made it is not known: of tensors with more than {count} numbers only statistics are kept.")
        more = [text.format(count=MAX_KEPT_NUMBERS)]
    is_open = not suspects.sentences
    return PassFinding(index, kind, join_sentences([*sentences, *more]), is_open=is_open, nodes=suspects.places)


def _find_first_node(statistics: PassStatistics, row: StepRow) -> int:
    """Return the first node that a call made, or one inside it; without any, a number behind all nodes."""
    trace = statistics.trace
    nodes = (node for node in statistics.compute_steps if trace.ops[node] != "AccumulateGrad")
    inside = (node for node in nodes if row.own_call in statistics.enclosing_calls(node))
    return min(inside, default=len(trace.ops))


def _find_in_tensors(statistics: PassStatistics) -> PassFinding | None:
    """Find the op that made the NaN or Inf of a tensor of the graph, else the first such tensor that was made."""
    rows = [row for row in statistics.tensors if statistics.is_nonfinite(row.data)]
    row = min(rows, key=lambda row: row.node, default=None)
    if row is None:
        return None
    kind = statistics.find_new_kind(None, row.data) or "nan"
    if any(statistics.find_new_kind(None, tensor.data) == "nan" for tensor in rows):
        kind = "nan"
    origin = None if row.leaf else find_forward_origin(statistics, kind)
    if origin is None:
        return PassFinding(statistics.steps[0], kind, _describe_held(statistics, row, kind))
    given = [] if origin.seen or kind != "inf" else _describe_given_inf(statistics)
    return origin._replace(sentence=join_sentences([origin.sentence, *given]))


def _describe_held(statistics: PassStatistics, row: TensorRow, kind: str) -> str:
    text = _("{on} held {what} before backward began.")
    return text.format(on=statistics.trace.name(row.node, row.output), what=name_of_kind(kind))


def _describe_given_inf(statistics: PassStatistics) -> list[str]:
    """Say which outermost module was called with Inf before, if the first such call was; -Inf may be a mask."""
    calls = (row for _ignored, row in statistics.rows if row.kind == "call" and row.call is not None)
    outermost = (row for row in calls if statistics.trace.calls[row.own_call].parent is None)
    row = next((row for row in outermost if _holds_more_than_masks(statistics, row)), None)
    if row is None:
        return []
    names = {"module": statistics.describe_module(row.own_call), "what": name_of_kind("inf")}
    return [_("{module} is called with {what}.").format(**names), *describe_arguments(statistics, row)]


def _find_in_backward(statistics: PassStatistics) -> PassFinding | None:
    """Find the first step of the backward that adds NaN or Inf to a gradient."""
    for index, row in statistics.rows:
        if row.subject != "gradient" or row.kind not in _GRADIENT_KINDS or not statistics.is_nonfinite(row.after):
            continue
        kind = statistics.find_new_kind(_inputs_of_step(statistics, row), row.after)
        if kind is not None:
            nodes = (row.own_node,) if row.kind == "compute" else ()
            sentence = _describe_gradient(statistics, index, row, name_of_kind(kind))
            return PassFinding(index, kind, sentence, nodes=nodes, is_in_backward=True)
    return None


def _inputs_of_step(statistics: PassStatistics, row: StepRow) -> Any:
    """The values from which a step computes its gradient."""
    if row.kind == "arrive":
        return tuple(value for _ignored, _ignored, value in row.parts)
    if row.kind == "accumulate":
        arrived = statistics.arrival_steps.get(row.own_node)
        return row.before, None if arrived is None else statistics.trace.rows[arrived].after
    return row.before


def _describe_gradient(statistics: PassStatistics, index: int, row: StepRow, what: str) -> str:
    """The sentence on a step that adds NaN or Inf to a gradient."""
    step = statistics.trace.steps[index]
    if row.kind != "compute":
        return _(_BEGINS_HERE).format(what=what, sentence=step.sentence)
    sent = as_tuple(row.after)
    slot = next(slot for slot, value in enumerate(sent) if statistics.is_nonfinite(value))
    place = statistics.trace.edges.get((row.own_node, slot))
    to = "None" if place is None else statistics.trace.name(*place)
    names = {"on": statistics.describe_node(row.own_node), "what": what, "to": to}
    names |= {"before": format_values(step.before), "after": format_values(statistics.trace.value(sent[slot]))}
    sentence = _("{what} begins at {on}: it takes the gradient {before} and sends {after} to {to}.").format(**names)

    def may_be_cause(index: int) -> bool:
        value = statistics.value(index)
        return statistics.is_nonfinite(index) or (value.min is not None and value.min <= 0)

    reasons = explain_backward(statistics, row.own_node)
    return join_sentences([sentence, *reasons, *describe_saved(statistics, row.own_node, may_be_cause)])


def describe_saved(statistics: PassStatistics, node: int, may_be_cause: Callable[[int], bool]) -> Iterator[str]:
    """A sentence for each tensor that the node saved in the forward and that may be the cause, judged by its index."""
    for row in statistics.trace.lookup.saved(statistics.pass_id, node):
        if isinstance(row.value, int) and may_be_cause(row.value):
            text = _("In the forward pass, the node saved {name}: {value}.")
            yield text.format(name=row.name, value=statistics.value(row.value).text(40))
