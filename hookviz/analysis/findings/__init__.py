"""Find problems of a recording: one list, each finding with its cause and with the steps that show it."""

from hookviz.analysis.findings.finding import SEVERITIES, Finding, Findings, describe_pass
from hookviz.analysis.findings.overview import describe_no_findings, find_findings
from hookviz.analysis.findings.values.vanishing_exploding import CHAIN_FACTOR

__all__ = [
    "CHAIN_FACTOR",
    "SEVERITIES",
    "Finding",
    "Findings",
    "describe_no_findings",
    "describe_pass",
    "find_findings",
]
