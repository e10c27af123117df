"""A pass that is running, and all that has to be let go of when it ends."""

import threading
from typing import Any, Protocol

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbers import NodeNumbers
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.hook_observer import HookDictObserver
from hookviz.recorder.pass_observer import PassObserver
from hookviz.recorder.session import Session
from hookviz.support.interpreter import SharedSwitch
from hookviz.trace import Place


class OnNodes(Protocol):
    """What a pass needs of the observers on its nodes."""

    def lay(self, watched: "RunningPass", everywhere: bool) -> None:
        """Put them in place."""

    def wake(self, watched: "RunningPass") -> None:
        """Put one in front of every node, too."""

    def registered(self, watched: "RunningPass", hooks: dict[Any, Any]) -> None:
        """A hook was added to a node during the pass."""

    def lift(self) -> None:
        """Take them away."""


class RunningPass:
    """A pass that is running, and all that has to be let go of when it ends."""

    def __init__(self, session: Session, calls: CallTracker, numbering: NodeNumbers, nodes: "OnNodes") -> None:
        self.survey = GraphSnapshot(session.trace, numbering)
        self.seen = PassObserver(session.trace, self.survey, calls)
        self.nodes = nodes
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
