"""The findings of a trace on a console, and the exit status that follows from them."""

from typing import Any, TextIO

from hookviz.api.trace import Trace
from hookviz.command_line.console import write_line
from hookviz.command_line.conventions import ExitStatus
from hookviz.support.table import Table


def report_findings(trace: Trace, stream: TextIO | None = None, width: int | None = None) -> ExitStatus:
    """Write the findings to ``stream`` (standard output if None), and return the exit status.

    A remark alone is no reason to fail: it is worth knowing, and perhaps intended.
    """
    findings = trace.findings
    _write_table(findings, stream, width)
    is_bad = any(finding.is_bad for finding in findings)
    return ExitStatus.FOUND if is_bad else ExitStatus.GOOD


def _write_table(table: Table[Any], stream: TextIO | None, width: int | None) -> None:
    """Write a table in lines of ``width`` columns; without rows, the sentence that says so."""
    for line in table.lines(width):
        write_line(line, stream)
