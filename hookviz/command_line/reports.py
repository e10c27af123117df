"""What ``--json`` prints, made of what the API has."""

import cmath
import platform
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

from hookviz.analysis.comparison import Difference
from hookviz.analysis.findings.finding import Finding
from hookviz.analysis.hook_counts import HookCount
from hookviz.api.comparison import Comparison
from hookviz.api.trace import Trace, data_of
from hookviz.command_line.report_types import (
    CheckReport,
    CountedHookRecord,
    DifferenceRecord,
    DiffReport,
    DoctorReport,
    FindingRecord,
    FindingsReport,
    FirstRecord,
    HookRecord,
    HooksReport,
    StepsReport,
    ValueRecord,
)
from hookviz.support.table import Table
from hookviz.support.version import VERSION
from hookviz.trace import Hook
from hookviz.trace.values import Value

if TYPE_CHECKING:
    from hookviz.recorder.compatibility import Report
    from hookviz.static_checks.static_finding import StaticFinding


def report_findings(trace: Trace) -> FindingsReport:
    """Report the findings of a trace."""
    findings = trace.findings
    return {"notes": trace.notes, "findings": list(map(_record_finding, findings)), "caption": findings.caption}


def _record_finding(finding: Finding) -> FindingRecord:
    return {
        "severity": finding.severity,  # type: ignore[typeddict-item]
        "kind": finding.kind,
        "about": finding.about,
        "sentence": finding.sentence,
        "cause": finding.cause,
        "advice": finding.advice,
        "certainty": finding.certainty,
        "file": finding.file,
        "line": finding.line,
        "line_role": finding.line_role,
        "step": finding.step,
        "passes": list(finding.passes),
        "when": finding.when,
        "hooks": list(map(_record_hook, finding.hooks)),
        "parameters": list(finding.parameters),
    }


def _record_hook(hook: Hook) -> HookRecord:
    return {"name": hook.name, "on": hook.on, "kind": hook.kind, "file": hook.file, "line": hook.line}


def report_hooks(trace: Trace) -> HooksReport:
    """Report all hooks of a trace, those that did not fire last."""
    hooks = trace.hooks
    return {"notes": trace.notes, "hooks": list(map(_record_count, hooks)), "caption": hooks.caption}


def _record_count(row: HookCount) -> CountedHookRecord:
    finding = None if row.finding is None else _record_finding(row.finding)
    return {**_record_hook(row.hook), "fired": row.fired, "passes": list(row.passes), "finding": finding}


def report_steps(trace: Trace, steps: Sequence[int] | None) -> StepsReport:
    """Report the steps, counted from 0, of a trace; all if None."""
    records = trace.to_records()
    chosen = records if steps is None else [records[step] for step in steps]
    plain: list[Any] = [{name: _make_plain(x) for name, x in record.items()} for record in chosen]
    return {"notes": trace.notes, "steps": plain}


def _make_plain(x: Any) -> Any:
    """Return what JSON has for ``x``: a text for a number that it cannot write.

    >>> _make_plain((2, 3)), _make_plain(float("nan")), _make_plain(0.5)
    ([2, 3], 'nan', 0.5)
    """
    if isinstance(x, tuple):
        return list(x)
    return str(x) if isinstance(x, complex) or (isinstance(x, float) and not cmath.isfinite(x)) else x


def report_comparison(comparison: Comparison) -> DiffReport:
    """Report the gradients that differ between two traces."""
    first: FirstRecord | None = None
    if (step := comparison.first) is not None:
        is_this = step.trace is data_of(comparison.traces[0])
        hook = None if step.hook is None else step.hook.label
        first = {"trace": "this" if is_this else "other", "step": step.index, "hook": hook, "on": step.on}
    rows = list(map(_record_difference, comparison))
    return {"sentence": comparison.sentence, "first": first, "differences": rows}


def _record_difference(row: Difference) -> DifferenceRecord:
    return {
        "on": row.on,
        "kind": row.kind,
        "before": _record_value(row.before),
        "after": _record_value(row.after),
        "amount": _make_plain(row.amount),
        "steps": list(row.steps),
    }


def _record_value(value: Value | None) -> ValueRecord | None:
    if value is None:
        return None
    norm = None if value.note is not None else _make_plain(value.norm)
    return {"shape": list(value.shape), "dtype": value.dtype, "norm": norm, "text": value.text()}


def report_doctor(found: "Table[StaticFinding]") -> DoctorReport:
    """Report what ``doctor`` finds."""
    names = ("severity", "kind", "on", "sentence")
    findings: list[Any] = [{name: getattr(row, name) for name in names} for row in found]
    return {"findings": findings, "caption": found.caption}


def report_check(report: "Report") -> CheckReport:
    """Report how the installed PyTorch differs from what hookviz expects."""
    import torch

    from hookviz.autograd.torch_internals import TESTED, Use

    found: CheckReport = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "hookviz": VERSION,
        "tested": list(TESTED),
        "uses": [],
    }
    for use in get_args(Use):
        texts = [[one.text for one in all_ if one.use == use] for all_ in (report.mismatches, report.gaps)]
        found["uses"].append({"use": use, "points": report.checked[use], "mismatches": texts[0], "gaps": texts[1]})
    return found
