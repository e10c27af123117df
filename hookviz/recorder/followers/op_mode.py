"""Shows every op of one thread to an observer while a recording is open."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torch.overrides import TorchFunctionMode

from hookviz.autograd.torch_internals import count_function_modes, pop_function_mode, push_function_mode


class OpObserver(Protocol):
    """Sees each op before and after it runs; none of this may raise."""

    def op_begins(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """Look at the arguments of an op; None if its result is of no interest."""

    def op_returned(self, op: Any, result: Any) -> None:
        """Look at the result of an op; ``op`` is what ``op_begins`` returned."""


class OpMode(TorchFunctionMode):
    """Passes every op on as it is, and shows it to an observer; without an observer it only passes on."""

    def __init__(self, observer: OpObserver) -> None:
        super().__init__()
        self.observer: OpObserver | None = observer

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an op. A traceback of its exception shows no frame of ours."""
        options = kwargs or {}
        observer = self.observer
        op = None if observer is None else observer.op_begins(func, args, options)
        try:
            result = func(*args, **options)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        if observer is not None and op is not None:
            observer.op_returned(op, result)
        return result


def remove_mode(mode: TorchFunctionMode) -> int | None:
    """Remove a mode from the stack of this thread, and leave the user's modes above it as they are.

    Returns how many modes are below it; None if it is not on the stack, as in an op that it passes on.
    """
    modes_above: list[Any] = []
    position = None
    while position is None and count_function_modes():
        top = pop_function_mode()
        if top is mode:
            position = count_function_modes()
        else:
            modes_above.append(top)
    _push_all(modes_above)
    return position


def insert_mode(mode: TorchFunctionMode, position: int) -> None:
    """Put a mode on the stack of this thread, above ``position`` others."""
    modes_above: list[Any] = []
    while count_function_modes() > position:
        modes_above.append(pop_function_mode())
    push_function_mode(mode)
    _push_all(modes_above)


def _push_all(modes: list[Any]) -> None:
    """Push modes that were popped in this order."""
    for mode in reversed(modes):
        push_function_mode(mode)
