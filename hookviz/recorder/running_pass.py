"""A pass that is running, and all that has to be let go of when it ends."""

import threading
from typing import TYPE_CHECKING

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.recorder.hook_observer import HookDictObserver
from hookviz.recorder.node_observers import NodeObservers
from hookviz.recorder.pass_observer import PassObserver
from hookviz.support.interpreter import SharedSwitch
from hookviz.trace import Place

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording


class RunningPass:
    """A pass that is running, and all that has to be let go of when it ends."""

    def __init__(self, recording: "Recording") -> None:
        self.survey = GraphSnapshot(recording.trace, recording.numbering)
        self.seen = PassObserver(recording.trace, self.survey, recording.calls)
        self.nodes = NodeObservers(recording)
        self.thread = threading.get_ident()
        self.stages: set[HookDictObserver] = set()
        self.raised: int | None = None
        """The exception that was on its way when the pass began, for ``Raised.leave``."""
        self.inputs: list[Place | None] = []
        """Where the gradients that ``autograd.grad`` was asked for arrive."""
        self.large = False
        """Whether it goes through so many nodes that the collector would come in between."""
        self._resting: SharedSwitch | None = None

    def rest(self, switch: SharedSwitch) -> None:
        """Turn a ``switch`` of the interpreter until somebody wakes it, or the pass is over, if that is worth it."""
        if self.large:
            self._resting = switch
            switch.take(self)

    def wake(self) -> None:
        """Turn it back."""
        if self._resting is not None:
            self._resting.leave(self)
            self._resting = None


def engine_thread() -> bool:
    """Whether this is one of the autograd engine's own threads (of a CUDA device, say)."""
    return isinstance(threading.current_thread(), threading._DummyThread)
