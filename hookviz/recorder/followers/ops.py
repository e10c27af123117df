"""The ops of one thread: what flows into one and out of it, who sees it run, and where in the user's code that is.

Tensors, arrays and numbers flow, without those of which an op reads the shape only.
"""

import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import getattr_static
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from hookviz.autograd.torch_internals import count_function_modes, pop_function_mode, push_function_mode
from hookviz.recorder.torch.grad_modes import APPLY_HAS_A_FRAME, grad_mode, is_function_running
from hookviz.support.printable import make_printable
from hookviz.support.source_code import shorten_filename
from hookviz.support.terminal_text import truncate
from hookviz.trace.hook_facts import HOOK_FACTS, TENSOR_HOOK_KINDS
from hookviz.trace.training_rows import CutKind

_DATA_ATTRIBUTES = frozenset({"data", "T", "mT", "H", "mH", "real", "imag"})
"""Attributes of a tensor that give its numbers. Others describe it, or give its gradient, which no forward computed."""
_SETTABLE_ATTRIBUTES = frozenset({"data", "requires_grad"})
_DESCRIBING_METHODS = (
    "size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "element_size", "data_ptr",
    "is_contiguous", "is_floating_point", "is_complex", "is_signed", "untyped_storage", "backward", "retain_grad",
    "__len__", "__hash__", "__repr__", "__format__", "__bool__",
    *(HOOK_FACTS[kind].method for kind in TENSOR_HOOK_KINDS),
)  # fmt: skip
NUMBER_OPS = frozenset({"item", "tolist", "numpy", "__array__", "__float__", "__complex__"})
"""Ops that turn a tensor into numbers that Python computes with."""
EACH_FOR_ITSELF = frozenset({
    "broadcast_tensors", "meshgrid", "align_tensors", "atleast_1d", "atleast_2d", "atleast_3d",
})  # fmt: skip
"""Ops that return each of their inputs in another shape: an output without a graph comes from an input without one."""
FREEZING_OPS = frozenset({"requires_grad_", "requires_grad"})
DETACHING_OPS = FREEZING_OPS | {"detach_"}
"""Ops that take the graph from a tensor that goes on existing: it has to be read before."""
_OVERWRITING_OPS = frozenset({
    "copy_", "fill_", "zero_", "data", "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "set_",
})  # fmt: skip
"""Ops after which nothing is left of the old numbers of their first argument."""
_IN_PLACE_OPERATORS = frozenset({
    "__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__ifloordiv__", "__imod__", "__ipow__",
    "__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__", "__imatmul__",
})  # fmt: skip
_SHAPE_OF_FIRST = frozenset({"new_zeros", "new_ones", "new_empty", "new_empty_strided", "new_full", "new_tensor"})
_SHAPE_OF_SECOND = frozenset({"view_as", "expand_as", "reshape_as", "type_as", "resize_as_"})
_SCANNED_ITEMS = 64
"""Of a list of numbers this many are looked at: the first one shows where the list is from."""
_MAX_DEPTH = 6
_CONTAINERS = (list, tuple, dict)


def _describing_functions() -> frozenset[Any]:
    """Return the functions that read or set attributes of a tensor, and methods, that pass on none of its numbers."""
    found: set[Any] = {getattr(torch.Tensor, name) for name in _DESCRIBING_METHODS}
    for name in dir(torch.Tensor):
        attribute: Any = getattr_static(torch.Tensor, name)
        if callable(attribute) or not hasattr(attribute, "__set__"):
            continue
        if name not in _DATA_ATTRIBUTES:
            found.add(attribute.__get__)
        if name not in _SETTABLE_ATTRIBUTES:
            found.add(attribute.__set__)
    return frozenset(found)


DESCRIBING = _describing_functions()
"""The functions that need no further look."""


def name_op(function: Callable[..., Any]) -> str:
    """Return the name of a torch function; of the function that reads or sets an attribute, that of the attribute.

    >>> name_op(torch.Tensor.detach), name_op(torch.Tensor.data.__get__)
    ('detach', 'data')
    """
    name: str = getattr(function, "__name__", "") or type(function).__name__
    if name in ("__get__", "__set__"):
        owner: Any = getattr(function, "__self__", None)
        return getattr(owner, "__name__", name)
    return name


def is_in_place(function: Callable[..., Any], name: str) -> bool:
    """Whether a torch function writes into its first argument.

    >>> is_in_place(torch.Tensor.add_, "add_"), is_in_place(torch.add, "add")
    (True, False)
    """
    if name.startswith("__"):
        return name in _IN_PLACE_OPERATORS
    return name.endswith("_") or getattr(function, "__name__", "") == "__set__"


def has_history(tensor: torch.Tensor) -> bool:
    """Whether a gradient can go through ``tensor``.

    A view that was made in ``no_grad`` requires grad because the tensor behind it does, and has no history.
    """
    if not (tensor.requires_grad and tensor.is_leaf):
        return tensor.requires_grad
    base = tensor._base
    return base is None or not base.requires_grad


def list_inputs(name: str, args: tuple[Any, ...], options: Mapping[str, Any], *, in_place: bool) -> list[Any]:
    """List the tensors, arrays and numbers among the arguments of an op whose numbers go into its result."""
    if name.endswith("_like") or name in _SHAPE_OF_FIRST or (in_place and name in _OVERWRITING_OPS):
        args = args[1:]
    elif name in _SHAPE_OF_SECOND:
        args = args[:1]
    return list(iter_values((args, options) if options else args))


def iter_values(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield what a value consists of: what is not a list, tuple or dict."""
    if not isinstance(value, _CONTAINERS):
        yield value
        return
    items: Iterable[Any] = value.values() if type(value) is dict else value
    is_of_numbers = True
    for number, item in enumerate(items if depth < _MAX_DEPTH else ()):
        is_of_numbers = is_of_numbers and not isinstance(item, (torch.Tensor, *_CONTAINERS))
        if is_of_numbers and number >= _SCANNED_ITEMS:
            return
        if isinstance(item, _CONTAINERS):
            yield from iter_values(item, depth + 1)
        else:
            yield item


class OpMode(TorchFunctionMode):
    """Passes every op on as it is, and shows it to an observer; without an observer it only passes on."""

    def __init__(self, observer: Any) -> None:
        super().__init__()
        self.observer = observer
        """Its ``op_begins`` is called before each op, its ``op_returned`` with what that returned and the result."""

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


GRAPH_MAY_FOLLOW: tuple[CutKind, ...] = (
    ("function", "checkpoint") if APPLY_HAS_A_FRAME else ("function", "checkpoint", "no_grad")
)
"""The kinds of cuts that are none if the output gets a graph afterwards, as that of an ``autograd.Function`` does.

Without a frame of ``apply``, its own ops cannot be told from those of a ``no_grad`` block.
"""
MAX_CODE = 80
"""Longer code is shortened; an ellipsis says so."""


class OpCode(NamedTuple):
    """The place of an op in the user's code."""

    file: str | None
    line: int
    text: str | None


def read_code(frame: FrameType) -> OpCode:
    """Read the expression that ``frame`` computes just now; its text is None if Python does not have it."""
    code = frame.f_code
    positions = next(islice(code.co_positions(), max(frame.f_lasti, 0) // 2, None), (None,) * 4)
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    text = _cut_out(lines, *positions)
    shown = None if text is None else truncate(make_printable(text), MAX_CODE)
    return OpCode(shorten_filename(code.co_filename), frame.f_lineno, shown or None)


def _cut_out(lines: list[str], first: int | None, last: int | None, start: int | None, end: int | None) -> str | None:
    """Cut a part out of ``lines``; Python counts columns in bytes of UTF-8."""
    if first is None or last is None or start is None or end is None or not 0 < first <= last <= len(lines):
        return None
    part = [line.encode() for line in lines[first - 1 : last]]
    part[-1] = part[-1][:end]
    part[0] = part[0][start:]
    return b"".join(part).decode(errors="replace")


def find_mode() -> CutKind:
    """Return how the calling op runs: ``graph``, or where torch records none."""
    if torch.is_grad_enabled():
        return "graph"
    mode = grad_mode()
    if mode != "no_grad":
        return "graph" if mode == "grad" else mode
    return "function" if is_function_running() else "no_grad"
