"""Find tensors that require grad and are not parameters: gradients are computed for them, and no optimizer has them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.training.outdated_optimizers import find_optimizers_of
from hookviz.analysis.findings.training.program_calls import find_tensor_making, put_line, read_code
from hookviz.analysis.findings.training.training_facts import TrainingFacts
from hookviz.support.messages import _
from hookviz.trace import TensorRow
from hookviz.trace.traversal import iter_enclosing_calls


def find_plain_tensors(facts: TrainingFacts) -> Iterator[Finding]:
    """Find leaves that get gradients in several passes, keep their numbers, and are not parameters.

    It is a warning if a model that an optimizer trains uses one that it was not given: then it is one of its own. A
    tensor that is an input may get a gradient for its own sake.
    """
    if not facts.updates or facts.lacks_passes:
        return
    names = {name for row in facts.parameters for name in row.names}
    leaves: dict[int, list[TensorRow]] = {}
    for row in facts.trace.tensors:
        if row.leaf and row.name not in names:
            leaves.setdefault(row.node, []).append(row)
    for node, rows in leaves.items():
        written = facts.written_of(node)
        if len(written) > 1 and _is_unchanged(facts, rows):
            yield from _judge(facts, rows[-1], written)


def _is_unchanged(facts: TrainingFacts, rows: list[TensorRow]) -> bool:
    """Whether the numbers of a tensor are known and the same in all passes, and no optimizer can hold it."""
    values = [facts.leaf_values(row.pass_id)[row.node] for row in rows]
    if values[0] is None or any(before != after for before, after in pairwise(values)):
        return False
    return all(row.held or row.shape != values[0][0] for row in facts.parameters)


def _judge(facts: TrainingFacts, row: TensorRow, written: list[int]) -> Iterator[Finding]:
    """Yield the finding of a tensor that a model did not get as an input, or that no model used."""
    trace = facts.trace
    users = [trace.owners.get(start) for (start, _slot), (end, _output) in trace.edges.items() if end == row.node]
    calls = {[*iter_enclosing_calls(trace, call)][-1] for call in users if call is not None}
    is_own = all(trace.calls[call].takes_grad is False for call in calls)
    if not users or not is_own or (calls and None in users):
        return
    model = trace.modules[trace.calls[min(calls)].module].name if calls else ""
    passes = tuple(trace.rows[step].pass_id for step in written)
    value = facts.leaf_values(row.pass_id)[row.node]
    shape = str(value[0]) if value is not None else ""
    names = {
        "on": row.name or _("a tensor of shape {shape}").format(shape=shape),
        "model": model,
        "count": f"{len(passes):,}",
    }
    text = _(
        "{on} requires grad and is in no optimizer: {count} passes computed its gradient, and its numbers stayed the "
        "same."
    )
    if model:
        text = _(
            "{model} uses {on}, which requires grad and is not among its parameters: {count} passes computed its "
            "gradient, and its numbers stayed the same."
        )
    severity = "warning" if model and find_optimizers_of(facts, model.partition(".")[0]) else "remark"
    finding = Finding(written[0], "missing", text.format(**names), severity, passes, describe_passes(passes, trace))
    advice = _("Make it an nn.Parameter of {model}, or give it to the optimizer.") if model else ""
    finding = replace(finding, advice=advice.format(**names) or _("Give it to the optimizer."))
    place = find_tensor_making(trace, row.name)
    if place is not None and model:
        text = _("{code} makes a tensor and not a parameter.").format(code=read_code(trace, place))
        finding = replace(finding, cause=text)
    yield put_line(finding, place, "step")
