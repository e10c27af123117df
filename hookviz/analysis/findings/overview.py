"""All findings of a trace in one list, the worst first, and what an empty list says."""

from collections.abc import Callable
from dataclasses import replace
from math import inf

from hookviz.analysis.findings.diagnosis import list_troubles
from hookviz.analysis.findings.finding import Finding, make_table, rank_severity
from hookviz.analysis.findings.graph_patterns import list_patterns
from hookviz.analysis.findings.silence import list_silence
from hookviz.analysis.findings.training import list_hygiene
from hookviz.analysis.source_lines.step_lines import StepLines
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.table import Table
from hookviz.trace import TraceData
from hookviz.trace.values import get_norm_nan_inf

_NO_GRADIENTS = N_("This trace holds no gradients to check.")


_LISTS: tuple[Callable[[TraceData], list[Finding]], ...] = (
    list_troubles,
    list_silence,
    list_hygiene,
    list_patterns,
)
"""The lists of findings; another one is added here. Each takes the trace and returns findings in any order."""


def find_all(trace: TraceData) -> list[Finding]:
    """List everything that is wrong in a trace: the findings of all lists."""
    return [finding for list_findings in _LISTS for finding in list_findings(trace)]


def find_findings(trace: TraceData) -> Table[Finding]:
    """Make the table of all findings, the worst first.

    Of equally bad ones those about gradients come before those about hooks, and the earlier step comes first.
    """
    found = sorted(find_all(trace), key=_rank)
    nothing = "" if found else describe_no_findings(trace)
    return make_table(trace, _add_lines(trace, found), nothing, ("when", "line"))


def find_troubles(trace: TraceData) -> Table[Finding]:
    """Make the table of the findings about the values of gradients."""
    troubles = list_troubles(trace)
    return make_table(trace, troubles, "" if troubles else _describe_no_troubles(trace))


def _rank(finding: Finding) -> tuple[int, bool, int]:
    step = -1 if finding.step is None else finding.step
    return rank_severity(finding.severity), finding.kind in ("unfired", "odd_hook"), step


def _add_lines(trace: TraceData, findings: list[Finding]) -> list[Finding]:
    """Add the line of the user's code to each finding with a step and no line yet, as far as the trace has it."""
    if not findings or not trace.lines:
        return findings
    lines = StepLines(trace)
    return [_add_line(trace, finding, lines) for finding in findings]


def _add_line(trace: TraceData, finding: Finding, lines: StepLines) -> Finding:
    if finding.step is None or finding.line is not None:
        return finding
    place = lines.line(trace.steps[finding.step])
    if place is None or place.line is None:
        return finding
    return replace(finding, line=place.line, file=lines.sources[place.source].file)


# -- nothing was found


def describe_no_findings(trace: TraceData) -> str:
    """The sentences for a trace without findings: what was examined, and what was not."""
    if not _has_gradients(trace):
        return join_sentences([_(_NO_GRADIENTS), *_list_unknown_nonfinite(trace)])
    looked = _(
        "Nothing was found. Checked: the gradients of {passes} passes for NaN, Inf, zeros, vanishing "
        "and exploding; whether the hooks fired that hookviz knows of (trace.unfired says where it "
        "looked); and whether a gradient reached the parameters of the models that still existed at "
        "the end of the recording."
    ).format(passes=f"{len(trace.roots):,}")
    steps = len(trace.updates)
    training = (
        _("Also checked: the parameters, learning rates and leftover gradients of {count} optimizer steps.").format(
            count=f"{steps:,}"
        )
        if steps
        else _("Not checked: the training, because no optimizer step was recorded.")
    )
    unlooked = [*_list_unexamined(trace), *_list_unknown_nonfinite(trace)]
    if any(note.fact == "every" for note in trace.remarks):
        unlooked.insert(
            0,
            _(
                "Not checked: the passes between the recorded ones, and therefore whether gradients of "
                "several steps add up."
            ),
        )
    devices = sorted({value[2] for value in trace.values} - {"", "cpu", "meta"})
    if devices:
        unlooked.append(
            _(
                "Not checked on {devices}, because reading would wait for the device: frozen parameters for "
                "NaN, and whether gradients are 0 at the optimizer's step."
            ).format(devices=", ".join(devices))
        )
    return join_sentences([looked, training, *unlooked])


def _describe_no_troubles(trace: TraceData) -> str:
    """The sentences for a trace without findings about the values of gradients; it also lists what was not examined."""
    if not _has_gradients(trace):
        return join_sentences([_(_NO_GRADIENTS), *_list_unknown_nonfinite(trace)])
    others = sum(len(list_findings(trace)) for list_findings in _LISTS if list_findings is not list_troubles)
    unknown = _list_unknown_nonfinite(trace)
    clean = (
        _(
            "No gradient is NaN, infinite or 0, and none vanishes or explodes. Other findings: {count}, "
            "see trace.findings."
        ).format(count=f"{others:,}")
        if others
        else _("Nothing is wrong with the gradients of this trace.")
        if not unknown
        else ""
    )
    return join_sentences([clean, *unknown, *_list_unexamined(trace)])


def _has_gradients(trace: TraceData) -> bool:
    return any(row.kind in ("seed", "arrive", "accumulate", "returned") for row in trace.rows)


def _list_unexamined(trace: TraceData) -> list[str]:
    """The sentences on what was not examined."""
    unexamined: list[str] = []
    hidden = {index for index, value in enumerate(trace.values) if value[-1] is not None}
    if hidden and (count := len(hidden & _list_gradient_values(trace))):
        unexamined.append(_("Not checked: {count} gradients whose numbers are not known.").format(count=f"{count:,}"))
    if trace.outside or {row.kind for row in trace.rows} & {"unobserved", "compiled", "fast_path"}:
        unexamined.append(_("Not checked: parts of the run that the trace does not hold, as its notes or steps say."))
    return unexamined


def _list_unknown_nonfinite(trace: TraceData) -> list[str]:
    """The sentence on values with NaN or Inf, for a trace in which no finding explains them."""
    known = [value for value in trace.values if value[-1] is None and 0 not in value[0]]
    # Most values of a deep network of scalars are finite numbers, which need no call of ours.
    count = sum([_is_nonfinite(value) for value in known if type(value[3]) is not float or not -inf < value[3] < inf])
    return (
        [
            _("Recorded values with NaN or Inf: {count}. hookviz did not find where it begins.").format(
                count=f"{count:,}"
            )
        ]
        if count
        else []
    )


def _is_nonfinite(value: tuple[object, ...]) -> bool:
    _ignored, nan_count, inf_count = get_norm_nan_inf(value)
    return nan_count > 0 or inf_count > 0


def _list_gradient_values(trace: TraceData) -> set[int | None]:
    """The indices of the values in all steps of nodes."""
    indices: set[int | None] = set()
    for values in (values for row in trace.rows if row.node is not None for values in (row.before, row.after)):
        indices.update(values if isinstance(values, tuple) else (values,))
    return indices
