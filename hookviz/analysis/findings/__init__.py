"""Find problems of the gradients of a trace, and the steps where they begin."""

from hookviz.analysis.findings.diagnosis import SEVERITIES, Trouble, describe_no_findings, find_troubles
from hookviz.analysis.findings.vanishing_exploding import CHAIN_FACTOR

__all__ = ["CHAIN_FACTOR", "SEVERITIES", "Trouble", "describe_no_findings", "find_troubles"]
