"""What follows a recording: each feature that notes something beside the calls and passes listens to its events."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import torch
from torch.optim import Optimizer

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import is_functorch_tensor
from hookviz.recorder.session import Session
from hookviz.support.user_objects import is_of

if TYPE_CHECKING:
    from hookviz.recorder.passes.pass_observer import RunningPass


class PassStart(NamedTuple):
    """A pass whose graph was read and that is about to run."""

    running: "RunningPass"
    roots: Sequence[Any]
    """What the user called backward on."""
    names: Mapping[str, torch.Tensor]
    """The names of tensors that were found where it was called."""
    inputs: Sequence[Any]
    """The tensors that the pass is limited to; empty if it is not."""

    @property
    def snapshot(self) -> GraphSnapshot:
        """The graph of the pass."""
        return self.running.snapshot

    @property
    def is_transformed(self) -> bool:
        """Whether a transform of ``torch.func`` began it, such as ``grad``: it runs through wrapped tensors."""
        return any(is_of(root, torch.Tensor) and is_functorch_tensor(root) for root in self.roots)


class Follower:
    """Listens to a recording. Each method is called at its event; one that a follower does not define costs nothing.

    An exception in one of them is reported in the trace, and does not reach the user's program.
    """

    events: ClassVar[tuple[str, ...]] = ()
    """The events to which the followers of a class listen."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.events = tuple(event for event in EVENTS if getattr(cls, event) is not getattr(Follower, event))

    def recording_begins(self) -> None:
        """Torch is about to be observed, in the thread of the recording."""

    def recording_ends(self) -> None:
        """Torch is about to be restored; this may be called twice, and from another thread."""

    def eager_region_begins(self) -> None:
        """Code that was compiled is about to run eagerly, and to be observed like any other."""

    def region_begins(self) -> None:
        """Compiled code is about to run."""

    def region_ended(self) -> None:
        """Compiled code has run."""

    def call_begins(self) -> None:
        """A module is called."""

    def call_written(self, call: int, module: torch.nn.Module) -> None:
        """A call of ``module`` has its row, an index of ``calls``."""

    def call_takes(self, call: int, items: Sequence[Any]) -> None:
        """A call with this row was given these arguments."""

    def call_returned(self, step: int, items: Sequence[Any]) -> None:
        """A call has returned these leaves, as the last of its steps shows."""

    def call_ended(self, depth: int) -> None:
        """A call of a module has ended, with ``depth`` calls around it."""

    def pass_opened(self, pass_id: int) -> None:
        """A pass has got its number; it may still turn out that it cannot be observed."""

    def pass_begins(self, start: PassStart) -> None:
        """A pass is about to run, and has no observers yet."""

    def accumulated(self, step: int, gradient: torch.Tensor | None, leaf: torch.Tensor) -> None:
        """A gradient was added to the ``.grad`` of a leaf; it is None if it is not at hand any more."""

    def pass_returned(self) -> None:
        """A pass has returned without an exception."""

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """A pass has ended, and its rows are still where it wrote them."""

    def optimizer_begins(self, optimizer: Optimizer) -> None:
        """An optimizer is about to take a step; its hooks are still to come."""

    def optimizer_stepped(self, optimizer: Optimizer) -> None:
        """An optimizer has changed its parameters; its hooks are still to come."""

    def forget(self, tensor: torch.Tensor) -> None:
        """A tensor is about to get other contents; torch swaps it only if nothing refers to it weakly."""

    def dropped(self, count: int) -> None:
        """The first ``count`` passes are about to be dropped."""

    def rows_may_move(self, is_last: bool) -> None:
        """All that ended has been noted by everybody; ``is_last``: nothing more will come."""

    def stop(self) -> None:
        """The recording stops before its block ends; what is running is recorded to its end."""

    def close(self) -> None:
        """The recording is over: write what is known only now."""


EVENTS = tuple(name for name, event in vars(Follower).items() if callable(event))
FollowerT = TypeVar("FollowerT", bound=Follower)


class Followers:
    """The followers of a recording, in the order in which they are told of an event."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._listeners: dict[str, list[Callable[..., None]]] = {event: [] for event in EVENTS}

    def add(self, follower: FollowerT) -> FollowerT:
        """Add a follower, and return it."""
        for event in follower.events:
            self._listeners[event].append(getattr(follower, event))
        return follower

    def tell(self, event: str, *arguments: Any) -> None:
        """Tell all followers of an event, the name of a method of ``Follower``; report what one of them raises."""
        for listener in self._listeners[event]:
            self._session.attempt(listener, *arguments)
