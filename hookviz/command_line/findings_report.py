"""The findings of a trace on a console, and the exit status that follows from them."""

from typing import TextIO

from hookviz.api.trace import Trace
from hookviz.command_line.console import write_line
from hookviz.command_line.conventions import ExitStatus


def report_findings(trace: Trace, stream: TextIO | None = None) -> ExitStatus:
    """Write the findings to ``stream`` (standard output if None), and return the exit status.

    A remark alone is no reason to fail: it is worth knowing, and perhaps intended.
    """
    findings = trace.findings
    write_line(repr(findings), stream)
    is_bad = any(finding.severity in ("error", "warning") for finding in findings)
    return ExitStatus.FOUND if is_bad else ExitStatus.GOOD
