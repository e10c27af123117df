"""Puts observers between the hooks of a hook dict, and removes them again.

torch reads each hook dict live and in raw order. So the user's hooks are neither wrapped nor replaced: during a pass
the dict ``{h1, h2}`` becomes ``{observer, h1, observer, h2, observer}``. The effect of a hook follows from what the
observers before and after it see. Torch calls what it has copied out of the dict of a tensor, so that the observers
leave it while the user's hooks run: one that counts the hooks of its tensor counts its own.
"""

from collections.abc import Callable, MutableMapping
from typing import Any, Generic, NamedTuple, TypeVar

from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.recorder.session import Session
from hookviz.recorder.side_effects import SideEffects, Surroundings, find_side_effects, look_around
from hookviz.support.interpreter import Uninterrupted
from hookviz.trace import NodeOutput

Hook = Callable[..., Any]


class Observer:
    """An entry of a hook dict that looks at the gradients. It returns None, which makes torch keep them."""

    __slots__ = ("dict_observer",)
    __torch_unserializable__ = True
    """Makes torch drop this hook from a pickled tensor without a warning."""

    def __init__(self, dict_observer: "HookDictObserver | None") -> None:
        self.dict_observer: Any = dict_observer

    def __call__(self, *arguments: Any) -> None:
        """Report ``arguments`` to the dict observer. Exceptions of hookviz must not reach the engine."""
        dict_observer = self.dict_observer
        try:
            with dict_observer.session.lock, DisableTorchFunction():
                if dict_observer.session.passes.nodes_got_hooks:
                    dict_observer.session.passes.observe_all_nodes()
                dict_observer.observer_called(self, arguments)
        except Exception as error:
            dict_observer.session.report_internal_error(error)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy as a ``NoOpHook``, so that a copy of a hook dict during a pass observes nothing."""
        return (NoOpHook, ())


class NoOpHook:
    """What copies of an observer become: a hook that does nothing."""

    def __call__(self, *_: Any) -> None:
        """Do nothing."""


Item = TypeVar("Item")
"""What hooks pass on: the fingerprint of a gradient, or a leaf of a module's arguments."""


class HookIteration(NamedTuple, Generic[Item]):
    """The hooks of one dict that torch is calling, how far it has come, and what the last observer saw."""

    hooks: list[tuple[Any, Hook]]
    position: int
    last: list[Item]
    around: Surroundings | None = None
    """What the hook that runs next may change beside what it is given."""
    effects: SideEffects = SideEffects()
    """What the hook that ran last did beside that."""

    @property
    def remaining(self) -> list[tuple[Any, Hook]]:
        """The user's hooks that torch has not called yet, or whose end no observer has seen."""
        return [entry for entry in self.hooks[self.position + 1 :] if not isinstance(entry[1], Observer)]


class HookDictObserver:
    """Observes one hook dict of one tensor or node while passes that use it are running."""

    __slots__ = ("dict", "kind", "node", "output", "session", "users")

    def __init__(self, session: Session, kind: str, hooks: Any, node: int, output: int | None = None) -> None:
        self.session, self.kind, self.dict, self.node, self.output = session, kind, hooks, node, output
        self.users = 0

    @property
    def place(self) -> NodeOutput:
        """The tensor that has the dict."""
        assert self.output is not None
        return self.node, self.output

    def find_receiver(self, arguments: tuple[Any, ...]) -> Any:
        """Return the pass observer to report to, or None if these hooks run outside of recorded passes."""
        return self.session.passes.current()

    def find_module(self, arguments: tuple[Any, ...]) -> Any:
        """Return the module that these hooks are called with, or None."""
        return None

    def user_hooks(self) -> list[tuple[Any, Hook]]:
        """Return (key, function) of the user's hooks, in the order in which they run."""
        return [(key, hook) for key, hook in self.items() if not isinstance(hook, Observer)]

    def items(self) -> list[tuple[Any, Hook]]:
        """Return (key, function) of everything in the dict, observers included."""
        return list(self.dict.items())

    def hooks_to_call(self, receiver: Any) -> list[tuple[Any, Hook]]:
        """Return the entries that torch has copied out of the dict and is calling now."""
        return self.items()

    def install(self) -> None:
        """Put an observer before the first of the user's hooks and after each of them."""
        entries = [(key, hook) for key, hook in self.dict.items() if not self._is_own(hook)]
        self.dict.clear()
        self._append_observer()
        for key, hook in entries:
            self.dict[key] = hook
            if not isinstance(hook, Observer):
                self._append_observer()

    def is_installed(self) -> bool:
        """Return whether there is an observer before the first hook and after each hook."""
        hooks = [hook for _, hook in self.items()]
        are_own = [self._is_own(hook) for hook in hooks if self._is_own(hook) or not isinstance(hook, Observer)]
        ends_well = len(are_own) % 2 == 1 or self.must_end_with_hook()
        return ends_well and all(own == (i % 2 == 0) for i, own in enumerate(are_own))

    def must_end_with_hook(self) -> bool:
        """Return whether the last entry must be the user's hook, with no observer after it."""
        return False

    def _is_own(self, hook: Hook) -> bool:
        return isinstance(hook, Observer) and hook.dict_observer is self

    def _append_observer(self) -> None:
        observer = Observer(self)
        self.dict[observer] = observer

    def uninstall(self) -> None:
        """Remove all observers. Hooks that were added since stay, in their order."""
        for key in [key for key, hook in self.dict.items() if self._is_own(hook)]:
            del self.dict[key]

    def observer_called(self, observer: Observer, arguments: tuple[Any, ...]) -> None:
        """Handle the call of an observer: record what the hooks since the previous observer have done."""
        receiver = self.find_receiver(arguments)
        if receiver is None:
            return
        running = receiver.running
        if len(self.dict) == 1 and not (running and self in running):  # no hook of the user's, the most frequent case
            receiver.leave(self, receiver.enter(self, arguments))
            return
        iteration = running.pop(self, None)
        # At the first call torch has just copied the values of the dict: these are what it is going to call.
        hooks = self.hooks_to_call(receiver) if iteration is None else iteration.hooks
        position = next((i for i, (_, hook) in enumerate(hooks) if hook is observer), None)
        if position is None:  # reinstalled since torch made its copy
            return
        if iteration is None:
            iteration = HookIteration(hooks, position, receiver.enter(self, arguments))
        last = iteration.last
        for key, hook in iteration.hooks[iteration.position + 1 : position]:
            if not isinstance(hook, Observer):
                if iteration.around is not None:
                    effects = find_side_effects(iteration.around, self.find_module(arguments), hook)
                    iteration = iteration._replace(effects=effects)
                last = receiver.hook_fired(self, (key, hook), iteration, arguments)
        if position + 1 < len(iteration.hooks):
            following = iteration.hooks[position + 1][1]
            self.hook_follows(receiver, following)
            around = look_around(self.find_module(arguments), following)
            receiver.running[self] = HookIteration(iteration.hooks, position, last, around)
        else:
            receiver.leave(self, last)
            self.hooks_ended()

    def hook_follows(self, receiver: Any, hook: Hook) -> None:
        """Prepare for ``hook``, or another observer, which torch calls next."""

    def hooks_ended(self) -> None:
        """Torch has called the last entry of the dict."""


class TensorDictObserver(HookDictObserver):
    """Observes a dict of hooks of a tensor, which a program can look into: it is as alone while a hook runs."""

    __slots__ = ()

    def hook_follows(self, receiver: Any, hook: Hook) -> None:
        """Take the observers out of the dict: torch runs a copy of what it held."""
        receiver.before_hook(hook)
        with Uninterrupted():
            self.uninstall()

    def hooks_ended(self) -> None:
        """Put the observers back."""
        with Uninterrupted():
            self.install()


class HookListObserver(HookDictObserver):
    """Observes the full backward hooks of one module call, which torch copied into a list when the call began."""

    __slots__ = ("call",)

    def __init__(self, session: Session, kind: str, hooks: list[Hook], node: int, call: int) -> None:
        super().__init__(session, kind, hooks, node)
        self.call = call

    def find_module(self, arguments: tuple[Any, ...]) -> Any:
        """Return the module of the call."""
        return arguments[0]

    def items(self) -> list[tuple[Any, Hook]]:
        """Return (index, function) of everything in the list, observers included."""
        return list(enumerate(self.dict))

    def install(self) -> None:
        """Put an observer before the first of the user's hooks and after each of them."""
        hooks = [hook for hook in self.dict if not self._is_own(hook)]
        self.dict[:] = [Observer(self)]
        for hook in hooks:
            self.dict += [hook] if isinstance(hook, Observer) else [hook, Observer(self)]

    def uninstall(self) -> None:
        """Remove all observers."""
        self.dict[:] = [hook for hook in self.dict if not self._is_own(hook)]


AnyDictObserver = TypeVar("AnyDictObserver", bound=HookDictObserver)


def release_observers(
    dict_observers: list[AnyDictObserver] | set[AnyDictObserver],
    observers_by_dict: MutableMapping[Any, AnyDictObserver],
) -> None:
    """Release all ``dict_observers``: uninstall those without other users and forget their dicts."""
    while dict_observers:
        dict_observer = dict_observers.pop()
        dict_observer.users -= 1
        if not dict_observer.users:
            dict_observer.uninstall()
            observers_by_dict.pop(id(dict_observer.dict), None)
