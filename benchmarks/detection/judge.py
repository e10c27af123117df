"""Runs a program recorded, and says whether the findings name its fault: right, open, silent or false."""

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path
from typing import Literal

import torch

import hookviz as hv
from benchmarks.detection.programs import Placed, find_marks, has_mark

Verdict = Literal["right", "open", "silent", "false"]


def record_program(path: Path) -> hv.Trace:
    """Run a program in this process, and record it."""
    torch.set_num_threads(1)
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hv.record() as trace, contextlib.suppress(Exception):
            runpy.run_path(str(path), run_name="__main__")
    return trace


def list_alarms(trace: hv.Trace) -> list[hv.Finding]:
    """List the errors and warnings."""
    return [finding for finding in trace.findings if finding.severity != "remark"]


def judge(path: Path, faults: list[Placed]) -> list[tuple[str, Verdict]]:
    """Return the name of each fault of a program with a verdict; one more, ``""``, for each other alarm."""
    trace, marks = record_program(path), list(find_marks(path.read_text()))
    alarms = list_alarms(trace)
    verdicts: list[tuple[str, Verdict]] = []
    for placed in faults:
        own = [finding for finding in alarms if _is_about(finding, placed)]
        right = [finding for finding in own if finding.line in marks or not has_mark(placed.fault)]
        alarms = [finding for finding in alarms if finding not in own]
        is_open = any(finding.certainty != "proven" or finding.kind in placed.fault.kinds for finding in own)
        verdicts.append((placed.fault.name, "right" if right else "open" if is_open else "silent"))
    true = {kind for placed in faults for kind in placed.fault.follows}
    return verdicts + [("", "false") for finding in alarms if finding.kind not in true]


def _is_about(finding: hv.Finding, placed: Placed) -> bool:
    """Return whether a finding is of a right kind, and names the object."""
    names = [*(hook.on for hook in finding.hooks), *finding.parameters, finding.text]
    on = placed.fault.on.format(i=placed.layer)
    is_named = not on or any(re.search(rf"\b{on}\b", name) for name in names)
    return finding.kind in placed.fault.kinds and is_named
