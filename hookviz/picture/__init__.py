"""Pictures of a trace: scenes of boxes and arrows, laid out, and written as SVG."""

from hookviz.picture.figure import Figure
from hookviz.picture.graphviz_digraph import render
from hookviz.picture.pass_pictures import make_scene
from hookviz.trace import TraceData

__all__ = ["Figure", "build_trace_figure", "render"]


def build_trace_figure(trace: TraceData, step: int | None, *, tensors: bool = False, internal: bool = False) -> Figure:
    """Build the picture of ``trace`` at ``step``, or at the end of its last pass if ``step`` is None.

    ``tensors`` adds the layer of tensors, ``internal`` the nodes that nobody wrote.
    """
    return Figure(make_scene(trace, step, internal=internal), step, tensors=tensors)
