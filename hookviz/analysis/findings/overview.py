"""All findings of a trace in one list, the worst first, and what an empty list says."""

from dataclasses import replace
from typing import NamedTuple

from hookviz.analysis.findings.consequences import list_silence
from hookviz.analysis.findings.exceptions import list_exceptions
from hookviz.analysis.findings.finding import KINDS, Finding, Findings, describe_passes, put_line, rank_severity
from hookviz.analysis.findings.hooks.edits_in_place import list_edits_in_place
from hookviz.analysis.findings.hooks.firings import list_hooks_at
from hookviz.analysis.findings.hooks.hook_inputs import list_hook_inputs, list_legacy_hooks, list_lost_rows
from hookviz.analysis.findings.hooks.hook_moments import list_hook_moments, list_late_bindings
from hookviz.analysis.findings.hooks.kept_outputs import list_kept_outputs
from hookviz.analysis.findings.hooks.recomputed_hooks import list_recomputed_hooks
from hookviz.analysis.findings.hooks.registrations import (
    list_copied_hooks,
    list_overwritten_handles,
    list_repeated_hooks,
)
from hookviz.analysis.findings.hooks.returned_values import (
    list_reshaped_outputs,
    list_unreturned_values,
    list_zeroing_hooks,
)
from hookviz.analysis.findings.hooks.silent_hooks import ExplainedHook, list_silent_hooks
from hookviz.analysis.findings.training.hygiene import list_hygiene
from hookviz.analysis.findings.values.broadcasts import list_broadcasts
from hookviz.analysis.findings.values.diagnosis import list_troubles
from hookviz.analysis.findings.values.graph_patterns import list_patterns
from hookviz.analysis.step_lines import StepLines
from hookviz.support.messages import _, join_list, join_sentences
from hookviz.trace import HOOK_KINDS, TraceData
from hookviz.trace.notes import PART_NOTES
from hookviz.trace.values import as_tuple, get_norm_nan_inf

_LISTS = (
    list_exceptions,
    list_troubles,
    list_edits_in_place,
    list_repeated_hooks,
    list_overwritten_handles,
    list_copied_hooks,
    list_legacy_hooks,
    list_recomputed_hooks,
    list_hook_inputs,
    list_lost_rows,
    list_unreturned_values,
    list_reshaped_outputs,
    list_hook_moments,
    list_late_bindings,
    list_kept_outputs,
    list_hygiene,
    list_patterns,
    list_broadcasts,
)
"""The lists of findings that do not depend on others; another one is added here. Each takes the trace."""


class Diagnosis(NamedTuple):
    """What a trace was searched for: its findings, and what they were made of."""

    findings: Findings
    silent_hooks: list[ExplainedHook]
    """Each hook that did not fire, or fired in a way that one may not expect, whether or not a finding tells of it."""
    lines: StepLines
    """The lines of the user's code."""
    nothing: str
    """What stands in place of findings: what was looked at, and what was not. Empty if there are some."""


def diagnose(trace: TraceData) -> Diagnosis:
    """Search a trace for all findings, and list them, the worst first.

    Of equally bad ones an exception comes first, then those about gradients, then those about hooks that did not fire;
    then the earlier step comes first.
    """
    others = [finding for list_findings in _LISTS for finding in list_findings(trace)]
    others += list_zeroing_hooks(trace, others)
    silent_hooks, lines = list_silent_hooks(trace), StepLines(trace)
    found = sorted(list_silence(trace, silent_hooks, others), key=_rank)
    complete = [_complete(trace, finding, lines) for finding in found]
    nothing = "" if found else _describe_no_findings(trace, len(silent_hooks))
    return Diagnosis(Findings(trace, complete, nothing), silent_hooks, lines, nothing)


def _rank(finding: Finding) -> tuple[int, bool, bool, int]:
    step = -1 if finding.step is None else finding.step
    is_late = finding.about == "hook" and finding.kind not in KINDS["hook"]
    return rank_severity(finding.severity), finding.kind != "exception", is_late, step


def _complete(trace: TraceData, finding: Finding, lines: StepLines) -> Finding:
    """Say when a finding holds, and add the line of the user's code if it has a step and no line yet."""
    finding = replace(finding, when=finding.when or describe_passes(finding.passes, trace))
    if finding.step is None or finding.line is not None or not trace.lines:
        return finding
    role = "begins" if finding.about == "value" else "cause"
    return put_line(finding, lines.place(trace.steps[finding.step]), role)


# -- nothing was found


def _describe_no_findings(trace: TraceData, silent: int) -> str:
    """The sentence for a trace without findings: what was looked at, and what was not.

    Of ``silent`` hooks that did not fire it is not known whether anybody expects them to.
    """
    if not any(row.kind in ("seed", "arrive", "accumulate", "returned") for row in trace.rows):
        return join_sentences([_("This trace holds no gradients to check."), *_list_unknown_nonfinite(trace)])
    fired = list_hooks_at(trace, trace.lookup.steps_of_kinds(*HOOK_KINDS))
    hooks = {(trace.hook_rows[index].key, trace.hook(index).on) for index in fired}
    looked = _(
        "Nothing was found. Looked at: the gradients of each pass ({passes}) for NaN, Inf, vanishing and exploding, "
        "those of its leaves for zeros; whether each hook ({hooks}) fired and each parameter of a called module that "
        "requires grad got a gradient, at least once; each optimizer step ({steps})."
    ).format(passes=f"{len(trace.roots):,}", hooks=f"{len(hooks):,}", steps=f"{len(trace.updates):,}")
    missed = _list_unexamined(trace)
    unlooked = [_("Not looked at: {parts}.").format(parts=join_list(missed))] if missed else []
    text = _("Hooks that did not fire, on what the passes did not use: {count}. trace.hooks lists them.")
    others = [text.format(count=f"{silent:,}")] if silent else []
    return join_sentences([looked, *others, *unlooked, *_list_unknown_nonfinite(trace)])


def _list_unexamined(trace: TraceData) -> list[str]:
    """List what was not examined."""
    facts, parts = {note.fact for note in trace.remarks}, []
    if "every" in facts:
        parts.append(_("the passes between the recorded ones"))
    if not facts.isdisjoint(PART_NOTES):
        parts.append(_("the other parts of the model"))
    if not facts.isdisjoint(("elsewhere", "elsewhere.calls")):
        parts.append(_("what ran in other threads"))
    if trace.outside or {row.kind for row in trace.rows} & {"unobserved", "compiled", "fast_path"}:
        parts.append(_("parts that could not be observed, as the notes or steps say"))
    hidden = {index for index, value in enumerate(trace.values) if value[-1] is not None}
    if hidden and (count := len(hidden & _list_gradient_values(trace))):
        parts.append(_("gradients whose numbers are not known ({count})").format(count=f"{count:,}"))
    devices = sorted({value[2] for value in trace.values} - {"", "cpu", "meta"})
    if devices:
        text = _("on {devices}, frozen parameters and whether gradients are 0 at a step")
        parts.append(text.format(devices=", ".join(devices)))
    return parts


def _list_unknown_nonfinite(trace: TraceData) -> list[str]:
    """The sentence on values with NaN or Inf, for a trace in which no finding explains them."""
    known = [value for value in trace.values if value[-1] is None and 0 not in value[0]]
    count = sum(any(get_norm_nan_inf(value)[1:]) for value in known)
    text = _("Recorded values with NaN or Inf: {count}. hookviz did not find where it begins.")
    return [text.format(count=f"{count:,}")] if count else []


def _list_gradient_values(trace: TraceData) -> set[int | None]:
    """The indices of the values in all steps of nodes."""
    indices: set[int | None] = set()
    for values in (values for row in trace.rows if row.node is not None for values in (row.before, row.after)):
        indices.update(as_tuple(values))
    return indices
