"""Observers between a user's hooks: putting them into a hook dict, and taking them out again.

torch reads each hook dict live and in raw order. So nothing of the user's is wrapped or replaced; the dict
``{h1, h2}`` becomes ``{observer, h1, observer, h2, observer}`` for the time of a pass, and what a hook did follows
from what the observers before and after it see.
"""

from collections.abc import Callable, MutableMapping
from typing import Any, Generic, NamedTuple, TypeVar

import torch

from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.recorder.session import Session

Hook = Callable[..., Any]


class Observer:
    """Stands in a hook dict and looks at what passes; returns None, which to torch means: keep it."""

    __slots__ = ("stage",)
    __torch_unserializable__ = True
    """torch drops such a hook from a pickled tensor without a warning."""

    def __init__(self, stage: "HookDictObserver | None") -> None:
        self.stage: Any = stage

    def __call__(self, *arguments: Any) -> None:
        """Look at ``arguments``; whatever goes wrong in here must not reach the engine."""
        stage = self.stage
        try:
            with stage.session.lock, DisableTorchFunction():
                if stage.session.passes.nodes_got_hooks:
                    stage.session.passes.observe_all_nodes()
                stage.called(self, arguments)
        except Exception as error:
            stage.session.report_internal_error(error)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy that takes a hook dict as it stands, during a pass, carries nothing that observes."""
        return (NoOpHook, ())


class NoOpHook:
    """What an observer is copied as: a hook that does nothing."""

    def __call__(self, *_: Any) -> None:
        """Do nothing."""


Item = TypeVar("Item")
"""One thing that hooks pass on, as it was seen: a gradient's fingerprint, or a leaf of what a module is given."""


class HookIteration(NamedTuple, Generic[Item]):
    """One pass through a stage: the hooks that torch is calling, and how far it has come."""

    hooks: list[tuple[Any, Hook]]
    position: int
    last: list[Item]


class HookDictObserver:
    """One hook dict of one tensor or node, while passes that use it are running."""

    __slots__ = ("dict", "kind", "node", "output", "session", "users")

    def __init__(self, session: Session, kind: str, hooks: Any, node: int, output: int = -1) -> None:
        self.session, self.kind, self.dict, self.node, self.output = session, kind, hooks, node, output
        self.users = 0

    @staticmethod
    def observes(hook: Hook) -> bool:
        """Whether ``hook`` is one of ours, of this recording or of another."""
        return isinstance(hook, Observer)

    def current(self, arguments: tuple[Any, ...]) -> Any:
        """Whom the observers report to: the pass in which they were called."""
        return self.session.passes.current()

    def user_hooks(self) -> list[tuple[Any, Hook]]:
        """(key, function) of the user's hooks, in the order in which they run."""
        return [(key, hook) for key, hook in self.items() if not self.observes(hook)]

    def items(self) -> list[tuple[Any, Hook]]:
        """All that torch is about to call."""
        return list(self.dict.items())

    def hooks_called(self, current: Any) -> list[tuple[Any, Hook]]:
        """What torch has copied out of the dict and is calling now."""
        return self.items()

    def install(self) -> None:
        """Put an observer before the first of the user's hooks and after each of them."""
        entries = [(key, hook) for key, hook in self.dict.items() if not self._own(hook)]
        self.dict.clear()
        self._observe()
        for key, hook in entries:
            self.dict[key] = hook
            if not self.observes(hook):
                self._observe()

    def installed(self) -> bool:
        """Whether an observer of ours stands before the first hook and after each."""
        hooks = [hook for _, hook in self.items()]
        stand = [self._own(hook) for hook in hooks if self._own(hook) or not self.observes(hook)]
        closed = len(stand) % 2 == 1 or self.open_ended()
        return closed and all(own == (i % 2 == 0) for i, own in enumerate(stand))

    def open_ended(self) -> bool:
        """Whether no observer may stand behind the last hook."""
        return False

    def _own(self, hook: Hook) -> bool:
        return isinstance(hook, Observer) and hook.stage is self

    def _observe(self) -> None:
        observer = Observer(self)
        self.dict[observer] = observer

    def uninstall(self) -> None:
        """Take all observers out; what the user has put in since stays, in its order."""
        for key in [key for key, hook in self.dict.items() if self._own(hook)]:
            del self.dict[key]

    def called(self, observer: Observer, arguments: tuple[Any, ...]) -> None:
        """An observer was called: note what the hooks since the one before it have done."""
        current = self.current(arguments)
        if current is None:
            return
        running = current.running
        if len(self.dict) == 1 and not (running and self in running):  # no hook of the user's: by far the most common
            current.leave(self, current.enter(self, arguments))
            return
        run = running.pop(self, None)
        # At the first call torch has just taken its own copy of the dict's values: this is what it is going to call.
        hooks = self.hooks_called(current) if run is None else run.hooks
        position = next((i for i, (_, hook) in enumerate(hooks) if hook is observer), None)
        if position is None:  # installed anew since torch took its copy
            return
        if run is None:
            run = HookIteration(hooks, position, current.enter(self, arguments))
        last = run.last
        for key, hook in run.hooks[run.position + 1 : position]:
            if not self.observes(hook):
                last = current.fired(self, (key, hook), run, arguments)
        if position + 1 < len(run.hooks):
            if self.kind == "tensor_hook":
                current.hook_follows(run.hooks[position + 1][1])
            current.running[self] = HookIteration(run.hooks, position, last)
        else:
            current.leave(self, last)


class HookListObserver(HookDictObserver):
    """The full backward hooks of one module call: torch copied them into a list when the module was called."""

    __slots__ = ("call",)

    def __init__(self, session: Session, kind: str, hooks: list[Hook], node: int, call: int) -> None:
        super().__init__(session, kind, hooks, node)
        self.call = call

    def items(self) -> list[tuple[Any, Hook]]:
        """All that torch is about to call, by their places in the list."""
        return list(enumerate(self.dict))

    def install(self) -> None:
        """Put an observer before the first of the user's hooks and after each of them."""
        hooks = [hook for hook in self.dict if not self._own(hook)]
        self.dict[:] = [Observer(self)]
        for hook in hooks:
            self.dict += [hook] if self.observes(hook) else [hook, Observer(self)]

    def uninstall(self) -> None:
        """Take all observers out."""
        self.dict[:] = [hook for hook in self.dict if not self._own(hook)]


AnyDictObserver = TypeVar("AnyDictObserver", bound=HookDictObserver)


def release_observers(
    stages: list[AnyDictObserver] | set[AnyDictObserver], known: MutableMapping[Any, AnyDictObserver]
) -> None:
    """Let go of all ``stages``: those that nobody else uses are uninstalled and no longer ``known`` by their dicts."""
    while stages:
        stage = stages.pop()
        stage.users -= 1
        if not stage.users:
            stage.uninstall()
            known.pop(id(stage.dict), None)


def extract_gradients(stage: HookDictObserver, arguments: tuple[Any, ...]) -> list[torch.Tensor | None]:
    """The gradients that hooks of this kind hand on, out of what they are called with."""
    if stage.kind == "tensor_hook":
        return [arguments[0]]
    if stage.kind == "post_accumulate_hook":
        tensor = arguments[0]  # the leaf, or what the hook before returned, which torch is about to refuse
        if not isinstance(tensor, torch.Tensor):
            return [None, None]
        return [tensor.grad if tensor.is_leaf else None, tensor]
    if stage.kind == "full_backward_hook":
        return [*arguments[1], *arguments[2]]
    return list(arguments[1 if isinstance(stage, HookListObserver) else 0])
