"""Where the graph between parameters and the loss is cut, place by place."""

from hookviz import Trace
from hookviz.analysis.findings.parameters.missing_gradients import MissingGradient, list_missing_gradients


def missing_gradients(trace: Trace) -> list[MissingGradient]:
    """List the parameters without a gradient, with the kind of the place."""
    return list_missing_gradients(trace._data)
