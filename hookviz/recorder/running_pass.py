"""A pass that is running, and all that has to be released when it ends."""

import threading
from typing import Any, Protocol

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbers import NodeNumbers
from hookviz.recorder.graph_owners import GraphOwners
from hookviz.recorder.hook_observer import HookDictObserver
from hookviz.recorder.pass_observer import PassObserver
from hookviz.support.interpreter import SharedSwitch
from hookviz.trace import Place, TraceData


class PassNodeObservers(Protocol):
    """What a pass needs of the observers on its nodes."""

    def install(self, running_pass: "RunningPass", everywhere: bool) -> None:
        """Put them in place."""

    def observe_all_nodes(self, running_pass: "RunningPass") -> None:
        """Put one in front of every node, too."""

    def hook_registered(self, running_pass: "RunningPass", hooks: dict[Any, Any]) -> None:
        """A hook was added to a node during the pass."""

    def uninstall(self) -> None:
        """Take them away."""


class RunningPass:
    """A pass that is running, and all that has to be released when it ends."""

    def __init__(
        self, trace: TraceData, owners: GraphOwners, numbering: NodeNumbers, node_observers: PassNodeObservers
    ) -> None:
        self.snapshot = GraphSnapshot(trace, numbering)
        self.observer = PassObserver(trace, self.snapshot, owners)
        self.node_observers = node_observers
        self.thread = threading.get_ident()
        self.dict_observers: set[HookDictObserver] = set()
        self.earlier_exception: int | None = None
        """The exception that was on its way when the pass began, for ``ExceptionTracker.leave``."""
        self.inputs: list[Place | None] = []
        """Where the gradients that ``autograd.grad`` was asked for arrive."""
        self.large = False
        """Whether it goes through so many nodes that the collector would come in between."""
        self._paused: SharedSwitch | None = None

    def observe_all_nodes(self) -> None:
        """Put an observer in front of every node."""
        self.node_observers.observe_all_nodes(self)

    def pause(self, switch: SharedSwitch) -> None:
        """Turn a ``switch`` of the interpreter until somebody wakes it, or the pass is over, if that is worth it."""
        if self.large:
            self._paused = switch
            switch.take(self)

    def resume(self) -> None:
        """Turn it back."""
        if self._paused is not None:
            self._paused.leave(self)
            self._paused = None
