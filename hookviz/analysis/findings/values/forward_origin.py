"""Find the op of a forward that made NaN or Inf, with or without modules, and the numbers that grew before it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.ops import SOFTMAXES
from hookviz.analysis.findings.values.bounds import Bounds
from hookviz.analysis.findings.values.given_values import describe_given, find_entry
from hookviz.analysis.findings.values.op_causes import (
    ForwardOps,
    OpCause,
    contains_kind,
    explain_by_statistics,
    largest,
)
from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.analysis.findings.values.suspects import (
    Suspects,
    describe_inf,
    find_inf,
    find_suspects,
    read_forward,
)
from hookviz.support.messages import _, join_sentences
from hookviz.trace import NodeOutput, TraceData
from hookviz.trace.training_rows import UpdateRow
from hookviz.trace.values import Value, format_number, get_norm_nan_inf

FEWEST_OPS = 5
FACTOR_OF_OPS = 1e6
"""The numbers of a forward grew if each of so many ops made larger ones than the one before, by this factor in all."""
FEWEST_PASSES = 3
FACTOR_OF_PASSES = 1e3
"""The same for the losses of passes."""
FAR = 0.1
"""A step of an optimizer is large if it moves a parameter by this part of its norm."""


def find_forward_origin(statistics: PassStatistics, kind: str) -> PassFinding | None:
    """Find the first op that made ``kind``, ``nan`` or ``inf``, in the forward of a pass.

    An op made it if its inputs and results show that, or if the result is known to contain it and no known input is.
    The finding leads to the step in which the backward of the op computes.
    """
    ops = read_forward(statistics)
    made, origins = ops.find_cause(kind), _list_origins(statistics, ops.nodes, ops.known_values, kind)
    seen_at = next((node for node in origins if not ops.is_masked(node)), None)
    cause: OpCause | None
    if made is not None and (seen_at is None or made[0] <= seen_at):
        node, cause = made
    elif seen_at is not None:
        node, cause = seen_at, explain_by_statistics(ops, seen_at, kind)
    else:
        return None
    entry = find_entry(ops, node, kind) if cause is None else None
    if entry is not None:
        return _make_given(ops, *entry, kind)
    growth, suspects = [*_describe_growing_ops(ops, node)], Suspects()
    if cause is None:
        cause, suspects = _search_before(ops, node, kind)
    sentence, origin = _describe(ops, node, kind, cause), find_inf(ops, node, cause)
    places = [*suspects.places, node, *([] if origin is None else [origin[0]])]
    if suspects.places and ops.op_name(suspects.places[0]) == "MaskedFill":  # what it fills in is no NaN
        places.sort(key=lambda place: place != node)
    given = describe_given(ops, node) if cause is not None and cause.needs_inf and origin is None else ""
    sentences = [sentence, given, *(suspects.sentences or growth)]
    seen = cause is not None or suspects.are_explained
    return PassFinding(statistics.compute_steps[node], kind, join_sentences(sentences), seen=seen, nodes=tuple(places))


def _make_given(ops: ForwardOps, node: int, sentence: str, kind: str) -> PassFinding:
    """Make the finding of NaN or Inf that the graph was given at an op, and name a later op that made it as well."""
    made = ops.find_cause(kind)
    more = "" if made is None else _describe(ops, made[0], kind, made[1])
    step, text = ops.statistics.compute_steps[node], join_sentences([sentence, more])
    return PassFinding(step, kind, text, nodes=(node,), is_given=True)


def _search_before(ops: ForwardOps, node: int, kind: str) -> tuple[OpCause | None, Suspects]:
    """Find what made the NaN or Inf that is first seen at an op: the op itself, an Inf before it, or another op."""
    statistics = ops.statistics
    suspects = _find_suspects_before(statistics, node, kind)
    infinite = _find_inf_before(ops, node) if kind == "nan" and not suspects.are_explained else None
    if suspects.are_explained or infinite is not None:
        return None, infinite or suspects
    source = _find_source(ops, node)
    if source is None:
        return None, suspects
    if source[0] == node:
        return OpCause(kind, source[1]), Suspects()
    sentences = (_describe_source(statistics, *source), *_describe_growing_ops(ops, node))
    return None, Suspects(sentences, (source[0],), are_explained=True)


def _find_source(ops: ForwardOps, node: int) -> tuple[int, str] | None:
    """Return the only op that can have made the NaN or Inf of an op, and how; None if that is not clear."""
    bounds = Bounds(ops)
    source = bounds.find_source(node)
    is_mask = source is not None and ops.op_name(source) == "MaskedFill" and ops.op_name(node) in SOFTMAXES
    if source is not None and is_mask:
        return source, _("leaves whole rows nothing but what it fills in, and the softmax of -Inf alone is NaN")
    described = None if source is None else bounds.describe_product(source)
    return None if source is None or described is None else (source, described)


def _describe_source(statistics: PassStatistics, source: int, cause: str) -> str:
    text = _("Only {on} can have begun it: it {cause}.")
    return text.format(on=statistics.describe_node(source), cause=cause)


def _find_suspects_before(statistics: PassStatistics, node: int, kind: str) -> Suspects:
    """Find the suspects in the module call that made an op, or, if one explains it, in those of what it takes."""
    owners, following = statistics.trace.owners, statistics.trace.lookup.next_nodes.get(node, ())
    calls = dict.fromkeys([owners.get(node), *(owners.get(end) for _slot, end in following)])
    found = [find_suspects(statistics, call, node, kind) for call in calls]
    return next((suspects for suspects in found if suspects.are_explained), found[0])


def find_given_inf(statistics: PassStatistics, call: int) -> Suspects:
    """Find the op that made the Inf that a module was given."""
    ops = read_forward(statistics)
    own = max((node for node in ops.nodes if call in statistics.enclosing_calls(node)), default=None)
    found = None if own is None else _find_inf_before(ops, own)
    return found or Suspects()


def _find_inf_before(ops: ForwardOps, node: int) -> Suspects | None:
    """Find the first op before another one, on a path to it, that is known to have made Inf."""
    statistics = ops.statistics
    before = {one for one in statistics.list_behind(node) if statistics.trace.ops[one] != "AccumulateGrad"}
    made = ops.find_cause("inf", before)
    values = {place: value for place, value in ops.known_values.items() if place[0] in before}
    seen = next(_list_origins(statistics, sorted(before), values, "inf"), None)
    if made is not None and (seen is None or made[0] <= seen):
        return Suspects((describe_inf(statistics, *made),), made[:1], are_explained=True)
    if seen is None:
        return None
    source = _find_source(ops, seen)
    more = [] if source is None else [_describe_source(statistics, *source)]
    more += _describe_growing_ops(ops, seen)
    sentence = _("Before it, Inf is first seen at {on}.").format(on=statistics.describe_node(seen))
    return Suspects((sentence, *more), (seen,), are_explained=bool(more))


def _describe(ops: ForwardOps, node: int, kind: str, cause: OpCause | None) -> str:
    """The sentence on the op that made NaN or Inf; if that came from another Inf, also on the op that made this."""
    names = {"what": name_of_kind(kind), "on": ops.statistics.describe_node(node)}
    if cause is None:
        return _("{what} is first seen in the forward, at {on}: none of its known inputs held it.").format(**names)
    sentences = [_("{what} begins in the forward, at {on}: it {cause}.").format(cause=cause.text, **names)]
    origin = find_inf(ops, node, cause)
    if origin is not None:
        sentences.append(describe_inf(ops.statistics, *origin))
    return join_sentences(sentences)


def _list_origins(
    statistics: PassStatistics, nodes: Sequence[int], known: Mapping[NodeOutput, Value], kind: str
) -> Iterator[int]:
    """Yield the nodes whose result is known to contain NaN or Inf, and no known input does, in order of the forward."""
    for node in nodes:
        if not contains_kind(known.get((node, 0)), kind):
            continue
        inputs = (
            statistics.trace.edges[node, slot] for slot, _ignored in statistics.trace.lookup.next_nodes.get(node, ())
        )
        if not any(contains_kind(known.get(place), kind) for place in inputs):
            yield node


# -- numbers that grew before


def _describe_growing_ops(ops: ForwardOps, node: int) -> Iterator[str]:
    """Say by how much the results of equal ops in one module call grew, up to an op that made NaN or Inf."""
    owners = ops.statistics.trace.owners
    alike = [one for one in ops.nodes if one <= node and ops.op_name(one) == ops.op_name(node)]
    sizes = [largest(ops.known_value((one, 0))) for one in alike if owners.get(one) == owners.get(node)]
    run = _find_rise([size for size in sizes if math.isfinite(size)])
    if len(run) >= FEWEST_OPS and run[-1] >= FACTOR_OF_OPS * run[0] > 0:
        rate = (run[-1] / run[0]) ** (1 / (len(run) - 1))
        text = _(
            "Over {count} ops {op} of this forward the largest number grew from {first} to {last}, about ×{rate} from "
            "each to the next."
        )
        ends = {"first": format_number(run[0], 3), "last": format_number(run[-1], 3)}
        yield text.format(count=f"{len(run):,}", op=ops.statistics.trace.ops[node], rate=format_number(rate, 3), **ends)


def describe_growing_loss(trace: TraceData, pass_id: int) -> str:
    """Say by how much the loss grew over the passes before one that holds NaN or Inf; empty if it did not.

    A loss is that of the same op and line, with a step of an optimizer after each. That the steps are too large is said
    if the numbers show that they moved a parameter far.
    """
    passes: list[int] = []
    losses: list[float] = []
    if trace.losses.get(pass_id - 1) is None:  # of passes with NaN in a row, only the first looks further back
        return ""
    for earlier in _list_alike(trace, pass_id):
        loss, until = trace.losses.get(earlier), (passes or [pass_id])[-1]
        if loss is None or not _list_updates(trace, earlier, until):
            break
        passes.append(earlier)
        losses.append(loss)
    run = _find_rise(losses[::-1])
    if len(run) < FEWEST_PASSES or not run[-1] >= FACTOR_OF_PASSES * run[0] > 0:
        return ""
    text = _("Before that, the loss rose from {first} to {last} over {count} passes.")
    if all(_moved_far(trace, earlier, later) for later, earlier in pairwise(passes[: len(run)])):
        text = _(
            "Before that, the loss rose from {first} to {last} over {count} passes: the steps of the optimizer are too "
            "large. Try a smaller learning rate, or data and targets of the size of 1."
        )
    ends = {"first": format_number(run[0], 3), "last": format_number(run[-1], 3)}
    return text.format(count=f"{len(run):,}", **ends)


def _list_alike(trace: TraceData, pass_id: int) -> Iterator[int]:
    """Yield the passes before one that begin at the same op and in the same line, the last one first."""
    lines = {row.pass_id: (row.source, row.line) for row in trace.lines if row.pass_id is not None}

    def describe(number: int) -> tuple[object, ...]:
        return lines.get(number), *(trace.ops[node] for node, _output in trace.roots[number])

    own = describe(pass_id) if pass_id < len(trace.roots) else ()
    yield from (number for number in reversed(range(pass_id)) if own and describe(number) == own)


def _list_updates(trace: TraceData, earlier: int, later: int) -> list[UpdateRow]:
    """List the steps of optimizers between the begins of two passes."""
    first, last = (trace.lookup.steps(number) for number in (earlier, later))
    return [row for row in trace.updates if first and last and first[0] < row.step < last[0]]


def _moved_far(trace: TraceData, earlier: int, later: int) -> bool:
    """Whether a step between two passes is known to have moved a parameter by a large part of its norm."""
    moves = [move for row in _list_updates(trace, earlier, later) for move in row.moves]
    norms = {
        row.name: norm
        for row in trace.tensors
        if row.pass_id == earlier and row.leaf and row.data is not None
        if (norm := get_norm_nan_inf(trace.values[row.data])[0]) is not None
    }
    known = ((norm, trace.parameters[number].names) for number, norm, _group in moves if norm is not None)
    return any(norm > FAR * norms[name] for norm, names in known for name in names if name in norms)


def _find_rise(numbers: Sequence[float]) -> list[float]:
    """Return the last numbers of a sequence, as far as each is larger than the one before it."""
    start = len(numbers) - 1
    while start > 0 and numbers[start - 1] < numbers[start]:
        start -= 1
    return list(numbers[max(start, 0) :])
