"""Find problems of a recording: one list, each finding with its cause and with the steps that show it."""

from hookviz.analysis.findings.finding import Finding, Findings, describe_pass
from hookviz.analysis.findings.overview import Diagnosis, diagnose

__all__ = [
    "Diagnosis",
    "Finding",
    "Findings",
    "describe_pass",
    "diagnose",
]
