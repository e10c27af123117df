"""Find problems of a recording, and the steps that show them."""

from hookviz.analysis.findings.finding import SEVERITIES, Finding, describe_pass
from hookviz.analysis.findings.overview import describe_no_findings, find_findings, find_troubles
from hookviz.analysis.findings.vanishing_exploding import CHAIN_FACTOR

__all__ = [
    "CHAIN_FACTOR",
    "SEVERITIES",
    "Finding",
    "describe_no_findings",
    "describe_pass",
    "find_findings",
    "find_troubles",
]
