"""Find problems of a recording: one list, each finding with its cause and with the steps that show it."""

from hookviz.analysis.findings.finding import SEVERITIES, Finding, Findings, describe_pass
from hookviz.analysis.findings.overview import Diagnosis, diagnose
from hookviz.analysis.findings.values.vanishing_exploding import CHAIN_FACTOR

__all__ = [
    "CHAIN_FACTOR",
    "SEVERITIES",
    "Diagnosis",
    "Finding",
    "Findings",
    "describe_pass",
    "diagnose",
]
