"""Observers between a user's hooks: laying them into a hook dict, and taking them out again.

torch reads each hook dict live and in raw order. So nothing of the user's is wrapped or replaced; the dict
``{h1, h2}`` becomes ``{observer, h1, observer, h2, observer}`` for the time of a pass, and what a hook did follows
from what the observers before and after it see.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from hookviz.recorder.glimpse import Glimpse
    from hookviz.recorder.recording import Recording

Hook = Callable[..., Any]


class Observer:
    """Stands in a hook dict and looks at what passes; returns None, which to torch means: keep it."""

    __slots__ = ("stage",)
    __torch_unserializable__ = True
    """torch drops such a hook from a pickled tensor without a warning."""

    def __init__(self, stage: "Stage") -> None:
        self.stage = stage

    def __call__(self, *arguments: Any) -> None:
        """Look at ``arguments``; whatever goes wrong in here must not reach the engine."""
        try:
            with torch._C.DisableTorchFunction():
                self.stage.seen(self, arguments)
        except Exception as error:
            self.stage.recording.trouble(error)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy of a tensor or module that is made during the pass carries nothing that observes."""
        return (_nothing, ())


def _nothing() -> None:
    """What an observer is pickled as."""


class Run(NamedTuple):
    """One pass through a stage: the hooks that torch is calling, and how far it has come."""

    hooks: list[tuple[Any, Hook]]
    position: int
    last: "list[Glimpse | None]"


class Stage:
    """One hook dict of one tensor or node, while passes that use it are running."""

    __slots__ = ("dict", "kind", "node", "output", "recording", "users")

    def __init__(self, recording: "Recording", kind: str, hooks: dict[Any, Hook], node: int, output: int = -1) -> None:
        self.recording, self.kind, self.dict, self.node, self.output = recording, kind, hooks, node, output
        self.users = 0

    def user_hooks(self) -> list[tuple[Any, Hook]]:
        """(key, function) of the user's hooks, in the order in which they run."""
        return [(key, hook) for key, hook in self.dict.items() if type(hook) is not Observer]

    def lay(self) -> None:
        """Put an observer before the first of the user's hooks and after each of them."""
        hooks = self.user_hooks()
        self.dict.clear()
        self._observe()
        for key, hook in hooks:
            self.dict[key] = hook
            self._observe()

    def _observe(self) -> None:
        observer = Observer(self)
        self.dict[observer] = observer

    def lift(self) -> None:
        """Take all observers out; what the user has put in meanwhile stays, in its order."""
        for key, hook in list(self.dict.items()):
            if type(hook) is Observer:
                del self.dict[key]

    def seen(self, observer: Observer, arguments: tuple[Any, ...]) -> None:
        """An observer was called: note what the hooks since the one before it have done."""
        current = self.recording.current()
        if current is None:
            return
        if len(self.dict) == 1 and self not in current.running:  # no hook of the user's: by far the most common
            current.leave(self, current.enter(self, arguments))
            return
        run = current.running.pop(self, None)
        if run is None:
            # torch has just taken its own copy of the dict's values, so this is what it is going to call
            run = Run(list(self.dict.items()), -1, current.enter(self, arguments))
        position = next(i for i, (_, hook) in enumerate(run.hooks) if hook is observer)
        last = run.last
        for key, hook in run.hooks[run.position + 1 : position]:
            last = current.fired(self, (key, hook), run, arguments)
        if position + 1 < len(run.hooks):
            current.running[self] = Run(run.hooks, position, last)
        else:
            current.leave(self, last)
