"""Right and wrong answers to what lesson 05 asks."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tests.course.answers.common import raises


def register_hooks(model: Any, hook: Any) -> list[Any]:
    return [layer.register_forward_hook(hook) for layer in model]


@contextmanager
def watched(model: Any, hook: Any) -> Iterator[None]:
    handles = register_hooks(model, hook)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def removes_only_without_an_error(model: Any, hook: Any) -> Iterator[None]:
    handles = register_hooks(model, hook)
    yield
    for handle in handles:
        handle.remove()


@contextmanager
def never_removed(model: Any, hook: Any) -> Iterator[None]:
    register_hooks(model, hook)
    yield


@contextmanager
def on_everything(model: Any, hook: Any) -> Iterator[None]:
    with model.register_forward_hook(hook), watched(model, hook):
        yield


def no_decorator(model: Any, hook: Any) -> Iterator[None]:
    register_hooks(model, hook)
    yield


@contextmanager
def clears(model: Any, hook: Any) -> Iterator[None]:
    register_hooks(model, hook)
    try:
        yield
    finally:
        for layer in model:
            layer._forward_hooks.clear()


@contextmanager
def breaks_at_the_end(model: Any, hook: Any) -> Iterator[None]:
    with watched(model, hook):
        yield
    raise OSError("broken")


class HookGroup(AbstractContextManager[Any]):
    def __init__(self) -> None:
        self.handles: list[Any] = []

    def add(self, module: Any, hook: Any) -> None:
        self.handles.append(module.register_forward_hook(hook))

    def __exit__(self, *error: Any) -> bool | None:
        for handle in self.handles:
            handle.remove()
        return None


class AddsNothing(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        pass


class AddsTheFirstOnly(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        if not self.handles:
            super().add(module, hook)


class NeverRemoves(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        return None


class RemovesOnlyWithoutAnError(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        return super().__exit__() if error[0] is None else None


class Swallows(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        super().__exit__()
        return True


class ClearsAll(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        module.register_forward_hook(hook)
        self.handles.append(module)

    def __exit__(self, *error: Any) -> bool | None:
        for module in self.handles:
            module._forward_hooks.clear()
        return None


class SharesItsList(HookGroup):
    shared: list[Any] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.handles = self.shared


class FailsToAdd(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        raises()


class WithoutEnter:
    def add(self, module: Any, hook: Any) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        pass


class WithoutExit:
    def add(self, module: Any, hook: Any) -> None:
        module.register_forward_hook(hook)

    def __enter__(self) -> Any:
        return self


class ExitTakesNoError(HookGroup):
    def __exit__(self) -> None:  # type: ignore[override]
        super().__exit__()


class NeedsAModel(HookGroup):
    def __init__(self, model: Any) -> None:
        super().__init__()


class KeepsTheLastHandleOnly(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        self.handles = [module.register_forward_hook(hook)]


class RegistersBackwardHooks(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        self.handles.append(module.register_full_backward_hook(hook))


class AddsTwice(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        super().add(module, hook)
        super().add(module, hook)


class RemovesAtOnce(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        with module.register_forward_hook(hook):
            pass


class ReturnsTheError(HookGroup):
    def __exit__(self, *error: Any) -> Any:
        super().__exit__()
        return error


class TakesTheHookFirst(HookGroup):
    def add(self, module: Any, hook: Any) -> None:
        super().add(hook, module)


class RemovesFromTheListItWalks(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        for handle in self.handles:
            handle.remove()
            self.handles.remove(handle)
        return None


class RemovesOnlyAfterAnError(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        return super().__exit__() if error[0] else None


class RaisesAnErrorOfItsOwn(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        super().__exit__()
        raises()
        return None


class ClearsOnlyItsList(HookGroup):
    def __exit__(self, *error: Any) -> bool | None:
        self.handles.clear()
        return None


RIGHT: dict[str, Any] = {
    "05.1": 6,
    "05.2": 2,
    "05.3": 64,
    "05.4": "CADFEB",
    "05.5": 210,
    "05.6": lambda factor: lambda grad: grad * factor,
    "05.7": watched,
    "05.8": HookGroup,
}
WRONG: dict[str, list[Any]] = {
    "05.1": [3, 9, 1, 0, 5],
    "05.2": [3, 0, 1, 5],
    "05.3": [24, 4, 12, 9, 1, 5],
    "05.4": ["ABC", "AADFEB", "CCDFEB", "CAAFEB", ["C", "A", "D", "D", "E", "B"], "c, a, d, f, f, b", "CADFEC"],
    "05.5": [20, 190, 400, 1000, 5],
    "05.6": [
        lambda factor: factor * 10,
        lambda factor: None,
        lambda factor: lambda grad: grad * 4,
        lambda factor: lambda grad: grad + factor,
        lambda factor: lambda grad: grad.mul_(factor),
        lambda factor: lambda grad: print(grad * factor),
        lambda factor: lambda grad: factor,
        raises,
    ],
    "05.7": [
        register_hooks,
        no_decorator,
        never_removed,
        removes_only_without_an_error,
        on_everything,
        clears,
        lambda model, hook: model[0].register_forward_hook(hook),
        lambda model, hook: nullcontext(),
        breaks_at_the_end,
    ],
    "05.8": [
        nullcontext,
        list,
        AddsNothing,
        AddsTheFirstOnly,
        NeverRemoves,
        RemovesOnlyWithoutAnError,
        Swallows,
        ClearsAll,
        SharesItsList,
        ExitTakesNoError,
    ],
}

OTHER_GROUPS: list[tuple[Any, str]] = [
    (WithoutEnter, "It needs two methods"),
    (WithoutExit, "It needs two methods"),
    (FailsToAdd, "RuntimeError: no"),
    (NeedsAModel, "missing 1 required positional argument: 'model'"),
    (TakesTheHookFirst, "no attribute 'register_forward_hook'"),
    (RaisesAnErrorOfItsOwn, "RuntimeError: no"),
    (RegistersBackwardHooks, "no hook of the group ran"),
    (RemovesAtOnce, "no hook of the group ran"),
    (AddsTwice, "did not run once each"),
    (KeepsTheLastHandleOnly, "Who calls remove()?"),
    (RemovesFromTheListItWalks, "Who calls remove()?"),
    (RemovesOnlyAfterAnError, "Who calls remove()?"),
    (ClearsOnlyItsList, "Who calls remove()?"),
    (ReturnsTheError, "if __exit__ returns True"),
    (HookGroup(), "without brackets behind it"),
]
"""More wrong answers to 05.8, with words of the reason that each gets."""
