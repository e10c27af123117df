"""Pictures of a trace: scenes of boxes and arrows, laid out, and written as SVG."""

from hookviz.picture.figure import Figure
from hookviz.picture.graphviz_digraph import render
from hookviz.picture.scene import Scene
from hookviz.trace import TraceData

__all__ = ["Figure", "build_trace_figure", "render"]


def build_trace_figure(trace: TraceData, step: int | None, *, tensors: bool = False, internal: bool = False) -> Figure:
    """Build the picture of ``trace`` at ``step``, or at the end of its last pass if ``step`` is None.

    ``tensors`` adds the layer of tensors, ``internal`` the nodes that nobody wrote.
    """
    last = len(trace.rows) - 1 if step is None else step
    pass_id = trace.rows[last].pass_id if trace.rows else 0
    return Figure(Scene.from_trace(trace, pass_id, internal=internal), step, tensors=tensors)
