"""A running pass, with everything that has to be released when it ends."""

import threading
from typing import TYPE_CHECKING

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.recorder.hook_observer import HookDictObserver
from hookviz.recorder.modules.graph_owners import GraphOwners
from hookviz.recorder.passes.pass_observer import PassObserver
from hookviz.support.interpreter import SharedSwitch
from hookviz.trace import NodeOutput, TraceData

if TYPE_CHECKING:
    from hookviz.recorder.passes.node_observers import NodeObservers


class RunningPass:
    """A running pass, with everything that has to be released when it ends."""

    def __init__(
        self, trace: TraceData, owners: GraphOwners, numbering: NodeNumbers, node_observers: "NodeObservers"
    ) -> None:
        self.snapshot = GraphSnapshot(trace, numbering)
        self.observer = PassObserver(trace, self.snapshot, owners)
        self.node_observers = node_observers
        self.thread = threading.get_ident()
        self.dict_observers: set[HookDictObserver] = set()
        self.earlier_exception: int | None = None
        """The exception that was propagating when the pass began, for ``ExceptionTracker.leave``."""
        self.inputs: list[NodeOutput | None] = []
        """Places of the gradients that ``autograd.grad`` was asked for."""
        self.is_large = False
        """Whether the pass has so many nodes that the garbage collector would run during it."""
        self._paused: SharedSwitch | None = None

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node."""
        self.node_observers.observe_all_nodes(self)

    def pause(self, switch: SharedSwitch) -> None:
        """Take a ``switch`` that pauses part of the interpreter until ``resume``, if the pass is large."""
        if self.is_large:
            self._paused = switch
            switch.acquire(self)

    def resume(self) -> None:
        """Release the switch that ``pause`` took."""
        if self._paused is not None:
            self._paused.release(self)
            self._paused = None
