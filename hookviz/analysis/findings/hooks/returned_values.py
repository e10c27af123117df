"""Find hooks that return something of another shape than they were given, or gradients of 0 each time."""

from collections.abc import Iterable
from dataclasses import replace

from hookviz.analysis.findings.finding import Finding, describe_passes
from hookviz.analysis.findings.hooks.hook_inputs import loses_rows
from hookviz.analysis.findings.hooks.program_text import find_returning_line
from hookviz.support.messages import _
from hookviz.trace import Step, TraceData
from hookviz.trace.values import Value


def list_reshaped_outputs(trace: TraceData) -> list[Finding]:
    """List the forward hooks that put a tensor of another shape in the place of the output; the first time of each."""
    found: dict[int, Finding] = {}
    for number in trace.lookup.steps_of_kinds("forward_hook"):
        step = trace.steps[number]
        index = step.row.hook
        if index is not None and index not in found and _has_other_shape(step) and not loses_rows(step):
            found[index] = _make_reshaped(trace, step, index)
    return list(found.values())


def _has_other_shape(step: Step) -> bool:
    before, after = step.before, step.after
    is_tensor = isinstance(before, Value) and isinstance(after, Value)
    return step.row.effect == "replaced" and is_tensor and before.shape != after.shape  # type: ignore[union-attr]


def _make_reshaped(trace: TraceData, step: Step, index: int) -> Finding:
    hook = trace.hook(index)
    assert isinstance(step.before, Value) and isinstance(step.after, Value)
    names = {"hook": hook.label, "on": hook.on, "before": step.before.shape, "after": step.after.shape}
    sentence = _("{hook} on {on} returned a tensor of shape {after} in the place of the output of shape {before}.")
    advice = _("A hook that should only look returns nothing.")
    finding = Finding(step.index, "reshaped", sentence.format(**names), "remark", advice=advice, hooks=(hook,))
    file, line, role = find_returning_line(hook, trace.hook_rows[index].registered_at)
    return replace(finding, file=file, line=line, line_role=role)


def list_zeroing_hooks(trace: TraceData, others: Iterable[Finding]) -> list[Finding]:
    """List the tensor hooks that put zeros in the place of a gradient other than 0, in each of several passes.

    ``others`` are the other findings: one that begins at such a step says it already.
    """
    explained = {finding.step for finding in others}
    groups: dict[tuple[object, ...], list[Step]] = {}
    for number in trace.lookup.steps_of_kinds("tensor_hook"):
        step = trace.steps[number]
        if step.hook is not None:
            groups.setdefault((step.hook.file, step.hook.line, step.hook.name), []).append(step)
    return [
        _make_zeroing(trace, steps)
        for steps in groups.values()
        if len({step.pass_id for step in steps}) > 1
        and all(map(_sets_zero, steps))
        and explained.isdisjoint(step.index for step in steps)
    ]


def _sets_zero(step: Step) -> bool:
    before, after = step.before, step.after
    if step.row.effect not in ("edited", "replaced") or not isinstance(before, Value) or not isinstance(after, Value):
        return False
    return bool(before.norm) and after.norm == 0


def _make_zeroing(trace: TraceData, steps: list[Step]) -> Finding:
    first = steps[0]
    assert first.hook is not None and first.row.hook is not None
    passes = tuple(dict.fromkeys(step.pass_id for step in steps))
    text = _("{hook} on {on} put zeros in the place of the gradient, each of the {count} times that it fired.")
    sentence = text.format(hook=first.hook.label, on=first.hook.on, count=f"{len(steps):,}")
    when = describe_passes(passes, trace)
    finding = Finding(first.index, "zero", sentence, "remark", passes, when, hooks=(first.hook,))
    file, line, role = find_returning_line(first.hook, trace.hook_rows[first.row.hook].registered_at)
    return replace(finding, file=file, line=line, line_role=role)
