"""Right and wrong answers to what lesson 05 asks."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
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


RIGHT: dict[str, Any] = {
    "05.1": 6,
    "05.2": 64,
    "05.3": 2,
    "05.4": watched,
    "05.5": lambda factor: lambda grad: grad * factor,
}
WRONG: dict[str, list[Any]] = {
    "05.1": [3, 9, 1, 0, 5],
    "05.2": [24, 4, 12, 9, 1, 5],
    "05.3": [3, 0, 1, 5],
    "05.4": [
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
    "05.5": [
        lambda factor: factor * 10,
        lambda factor: None,
        lambda factor: lambda grad: grad * 4,
        lambda factor: lambda grad: grad + factor,
        lambda factor: lambda grad: grad.mul_(factor),
        lambda factor: lambda grad: print(grad * factor),
        lambda factor: lambda grad: factor,
        raises,
    ],
}
