"""A pass that is running, and all that has to be let go of when it ends."""

import threading

from hookviz import graph
from hookviz.recorder.calls import Calls
from hookviz.recorder.passes import Pass
from hookviz.recorder.stage import Stage
from hookviz.survey import Survey
from hookviz.trace import Place, Trace


class Watched:
    """A pass that is running, and all that has to be let go of when it ends."""

    def __init__(self, trace: Trace, numbering: graph.Numbering, calls: Calls) -> None:
        self.survey = Survey(trace, numbering)
        self.seen = Pass(trace, self.survey, calls)
        self.thread = threading.get_ident()
        self.stages: set[Stage] = set()
        self.raised: int | None = None
        """The exception that was on its way when the pass began, for ``Raised.leave``."""
        self.inputs: list[Place | None] = []
        """Where the gradients that ``autograd.grad`` was asked for arrive."""


def engine_thread() -> bool:
    """Whether this is one of the autograd engine's own threads (of a CUDA device, say)."""
    return isinstance(threading.current_thread(), threading._DummyThread)
