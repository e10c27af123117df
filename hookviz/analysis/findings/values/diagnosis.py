"""Find the problems of the gradients of a trace: the worst finding of each kind."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line, rank_severity
from hookviz.analysis.findings.training.program_calls import find_initialisation, find_zeroing
from hookviz.analysis.findings.values.nonfinite import find_harmless_nonfinite, find_nonfinite
from hookviz.analysis.findings.values.op_lines import find_backward_line, find_op_line, list_op_lines
from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.analysis.findings.values.saturation import find_saturation
from hookviz.analysis.findings.values.vanishing_exploding import find_vanishing_or_exploding
from hookviz.analysis.findings.values.zeros import find_zeros
from hookviz.support.messages import _, join_first, join_list, join_sentences
from hookviz.support.source_code import CodePlace
from hookviz.trace import TensorRow, TraceData
from hookviz.trace.sentences import format_pass_number

MIN_STUCK = 3
"""A gradient that is 0 in each of so many passes, because of a parameter of zeros, is no beginning of a training."""
MAX_LINES = 4
"""A sentence names at most so many lines."""
_NONFINITE = ("nan", "inf")
_KINDS = (*_NONFINITE, "zero", "exploding", "vanishing", "saturated")


Key = tuple[object, ...]
"""What findings of several passes share if they are the same."""


class _PassesOf(NamedTuple):
    """What is known of all passes about a finding of one of them."""

    same: list[int]
    """The passes in which the same was found."""
    of_kind: list[int]
    """The passes in which anything of its kind was found."""
    always: frozenset[int]
    """The leaves that get a gradient of 0 in each pass."""
    has_nonfinite: bool
    """Whether a pass has NaN or Inf."""


def list_troubles(trace: TraceData) -> list[Finding]:
    """List the worst finding of each kind about gradients, the worst first; of equally bad ones the first pass counts.

    A finding has all passes in which its kind was found; NaN and Inf, those in which they began at the same op; what a
    step did, those in which the same op or hook did it.
    """
    worst: dict[str, PassFinding] = {}
    passes: dict[Key, list[int]] = {}
    always: frozenset[int] | None = None
    """The leaves that get a gradient of 0 in each pass."""
    harmless: PassFinding | None = None
    for statistics in _split_passes(trace):
        found = list(_find_in_pass(statistics))
        leaves = frozenset(leaf for finding in found if finding.kind == "zero" for leaf in finding.leaves)
        always = leaves if always is None else always & leaves
        for finding in found:
            worst[finding.kind] = _choose_worse(trace, worst.get(finding.kind), finding)
        for key in {key for finding in found for key in _list_keys(trace, finding)}:
            passes.setdefault(key, []).append(statistics.pass_id)
        if harmless is None and worst.keys().isdisjoint(_NONFINITE):
            harmless = find_harmless_nonfinite(statistics)
    if harmless is not None:
        worst.setdefault(harmless.kind, harmless)

    def order(finding: PassFinding) -> tuple[int, int, int]:
        return rank_severity(finding.severity), trace.rows[finding.step].pass_id, _KINDS.index(finding.kind)

    published = [
        _publish(trace, finding, _make_known(trace, finding, passes, always or frozenset()))
        for finding in sorted(worst.values(), key=order)
    ]
    return [
        _add_start(trace, finding, passes.get((finding.kind,), [])) if finding.kind in _NONFINITE else finding
        for finding in published
    ]


def _choose_worse(trace: TraceData, known: PassFinding | None, finding: PassFinding) -> PassFinding:
    """Choose the worse one of two findings; of NaN or Inf from the same op the earlier one, which is then as bad."""
    if known is None or rank_severity(finding.severity) >= rank_severity(known.severity):
        return finding if known is None else known
    is_same = finding.kind in _NONFINITE and _key_of(trace, known) == _key_of(trace, finding)
    return known._replace(severity=finding.severity) if is_same else finding


def _key_of(trace: TraceData, finding: PassFinding) -> Key:
    """Return what findings of several passes share if they are the same: NaN that began at the same op of a module.

    After a step with NaN, the parameters hold it, and later passes begin with that.
    """
    if finding.kind not in _NONFINITE:
        return (finding.kind,)
    row = trace.rows[finding.step]
    module = "" if row.call is None else trace.plain_call(row.call)
    return finding.kind, module, *(trace.ops[node] for node in finding.nodes[:1])


def _key_of_effect(trace: TraceData, kind: str, step: int, leaf: int | None) -> Key:
    """Return what steps of several passes share if the same op of a module, or the same hook, does it to a leaf."""
    row, on = trace.rows[step], "" if leaf is None else trace.lookup.leaf_names.get(leaf, "")
    if row.hook is not None:
        hook, node = trace.hook(row.hook), trace.hook_rows[row.hook].node
        own = (hook.on,) if node is None else _describe_maker(trace, node)
        return kind, on, *hook.source_[:3], *own
    return kind, on, *_describe_maker(trace, row.own_node)


def _describe_maker(trace: TraceData, node: int) -> tuple[str, str]:
    """Return the module whose call made a node, and the op; a later pass has another node of these."""
    call = trace.owners.get(node)
    return "" if call is None else trace.modules[trace.calls[call].module].name, trace.ops[node]


def _list_keys(trace: TraceData, finding: PassFinding) -> set[Key]:
    """Return what identifies each thing of which a finding holds in its pass, and what only its kind does."""
    effects = {_key_of_effect(trace, finding.kind, *effect) for effect in finding.effects}
    return {(finding.kind,), _key_of(trace, finding), *effects}


def _make_known(
    trace: TraceData, finding: PassFinding, passes: dict[Key, list[int]], always: frozenset[int]
) -> _PassesOf:
    effects = [effect for effect in finding.effects if effect[0] == finding.step]
    keys = [_key_of_effect(trace, finding.kind, *effect) for effect in effects] or [_key_of(trace, finding)]
    first, *others = [passes.get(key, []) for key in keys]
    same = [number for number in first if all(number in other for other in others)]
    has_nonfinite = any((kind,) in passes for kind in _NONFINITE)
    return _PassesOf(same, passes.get((finding.kind,), []), always, has_nonfinite)


def _publish(trace: TraceData, finding: PassFinding, known: _PassesOf) -> Finding:
    """Make a public finding of a finding in a pass, with all passes in which it was found.

    Zeros in the first of several passes alone are a remark: weights that start at 0, as in a residual branch, do that.
    Zeros in each pass are a warning if an optimizer holds a leaf that gets nothing else.
    """
    passes = known.same or [trace.rows[finding.step].pass_id]
    is_of_op = finding.kind == "zero" and trace.rows[finding.step].kind == "compute"
    is_first = is_of_op and known.of_kind == [0] and not known.has_nonfinite and not trace.dropped
    if is_first and _computes_later(trace, trace.rows[finding.step].own_node):
        later = _("Later passes do not show this, as where a weight starts at 0.")
        sentence = join_sentences([finding.sentence, later])
        return Finding(finding.step, finding.kind, sentence, "remark", tuple(passes), advice=finding.advice)
    if len(known.of_kind) == len(trace.roots) >= MIN_STUCK and not finding.is_reached:
        finding = _say_stuck(trace, finding, known)
    found = Finding(
        finding.step, finding.kind, finding.sentence, finding.severity, tuple(passes), advice=finding.advice
    )
    found = replace(found, certainty="proven" if finding.seen and not finding.is_open else "open")
    place = _find_cause_line(trace, finding)
    if place is not None:
        return put_line(found, *place)
    return replace(found, sentence=join_sentences([found.sentence, *_name_lines(trace, finding.nodes[:1])]))


def _computes_later(trace: TraceData, node: int) -> bool:
    """Whether the op of a module that made a node computes in a later pass, too."""
    maker, first = _describe_maker(trace, node), min(trace.lookup.passes)
    later = (other for pass_id, other in trace.lookup.compute_steps if pass_id > first)
    return any(_describe_maker(trace, other) == maker for other in later)


def _find_cause_line(trace: TraceData, finding: PassFinding) -> tuple[CodePlace, str] | None:
    """Return the line of the code, and its role, that caused a finding; None if it is not clear."""
    made = find_zeroing(trace, finding.zeros[0]) if finding.zeros else None
    if made is not None:
        return made, "zeros"
    drawn = find_initialisation(trace) if finding.is_by_weights else None
    if drawn is not None:
        return drawn, "draws"
    own = trace.rows[finding.step].pass_id
    backward = find_backward_line(trace, own, finding.nodes[0]) if finding.is_in_backward and finding.nodes else None
    if backward is not None:
        return backward, "derivative"
    place = find_op_line(trace, finding.nodes)
    return None if place is None else (place, "begins")


def _name_lines(trace: TraceData, nodes: tuple[int, ...]) -> Iterator[str]:
    """Name the lines that can have made a node, if they are few."""
    for node in nodes:
        lines = [place.line for place in list_op_lines(trace, node)]
        if 1 < len(lines) <= MAX_LINES:
            text = _("One of these lines may have made {op}: {lines}.")
            yield text.format(op=trace.name(node), lines=join_list(list(map(str, lines))))


def _say_stuck(trace: TraceData, finding: PassFinding, known: _PassesOf) -> PassFinding:
    """Say of zeros that each pass has, after steps of an optimizer, what does not learn because of them."""
    held = {name for row in trace.parameters if row.optimizers for name in row.names}
    names = [trace.lookup.leaf_names.get(leaf, "") for leaf in sorted(finding.leaves & known.always)]
    stuck = [name for name in names if name in held]
    is_same = len(known.same) == len(known.of_kind)
    steps = _count_steps(trace, {*stuck, *finding.zeros})
    if not steps or (not stuck and not (finding.zeros and is_same)):
        return finding
    count = f"{steps:,}"
    text = _("In each pass {names} got a gradient of 0: after {count} steps, they never learned.")
    if finding.zeros and is_same:
        text = _("It is so in each pass, after {count} steps: neither that parameter nor what comes before it learns.")
    more = text.format(count=count, names=join_first(stuck))
    return finding._replace(sentence=join_sentences([finding.sentence, more]), severity="warning")


def _count_steps(trace: TraceData, names: set[str]) -> int:
    """Count the steps, before the last pass, of the optimizer of some parameters; of several, of that with most."""
    holders = {one for row in trace.parameters if not names.isdisjoint(row.names) for one in row.optimizers}
    until = trace.lookup.steps(max(trace.lookup.passes))[0]
    taken = [trace.rows[row.step].optimizer for row in trace.updates if row.step < until]
    counts = [taken.count(one) for one in dict.fromkeys(taken) if one in holders or not holders]
    return max(counts, default=0)


def _add_start(trace: TraceData, finding: Finding, nonfinite: Collection[int]) -> Finding:
    """Say since when there is NaN, or Inf, if all passes after the first one with it have it, too."""
    if not nonfinite or not finding.passes:
        return finding
    first, rest = min(finding.passes), range(min(finding.passes), len(trace.roots))
    if len(finding.passes) >= len(rest) or not all(number in nonfinite for number in rest):
        return finding
    return replace(finding, when=_("from pass {number} on").format(number=format_pass_number(trace, first)))


def _split_passes(trace: TraceData) -> Iterator[PassStatistics]:
    """The statistics of each pass of a trace."""
    tensors: dict[int, list[TensorRow]] = {}
    for tensor in trace.tensors:
        tensors.setdefault(tensor.pass_id, []).append(tensor)
    for pass_id in trace.lookup.passes:
        yield PassStatistics(trace, trace.lookup.steps(pass_id), tensors.get(pass_id, []))


def _find_in_pass(statistics: PassStatistics) -> Iterator[PassFinding]:
    """Find everything that is wrong in one pass."""
    yield from find_nonfinite(statistics)
    zeros = find_zeros(statistics)
    if zeros is not None:
        yield zeros
    yield from find_vanishing_or_exploding(statistics)
    yield from find_saturation(statistics)
