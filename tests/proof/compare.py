"""What a pass leaves behind, as plain data by which two runs can be compared."""

from __future__ import annotations

import gc
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node, get_gradient_edge

import hookviz as hv

Watch = Callable[[], AbstractContextManager[Any]]
"""Something to put around a pass: `hv.record`, nothing at all, or a recorder that is wrong on purpose."""

plain: Watch = nullcontext
UNKNOWN_TO_NUMPY = {torch.bfloat16: torch.int16, torch.complex32: torch.int32}
PACKAGE = str(Path(hv.__file__).parent)


def draw_from(number: int) -> None:
    """Let the CPU draw the same numbers again.

    ``torch.manual_seed`` also turns to each kind of device that is not in use yet, and writes down the whole stack for
    each: in a loop it takes longer than what is tested.
    """
    torch.default_generator.manual_seed(number)


class Bits(NamedTuple):
    """Everything about a tensor that two runs must have in common, down to the sign of a zero."""

    kind: tuple[Any, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: bytes

    def __repr__(self) -> str:
        dtype = self.kind[0]
        numbers = torch.frombuffer(bytearray(self.data), dtype=dtype).tolist() if self.data else []
        return f"<{dtype} {list(self.shape)} strides {list(self.strides)}: {numbers[:16]}>"


def bits(tensor: torch.Tensor | None) -> Any:
    """Return a tensor's bits, or those of the strided tensors that a sparse one is made of."""
    if tensor is None:
        return None
    if tensor.layout is not torch.strided:
        return (str(tensor.layout), tuple(tensor.shape), *map(bits, sparse_parts(tensor)))
    bare = tensor.detach().resolve_conj().resolve_neg()
    raw = bare.view(UNKNOWN_TO_NUMPY.get(bare.dtype, bare.dtype)).numpy(force=True)
    kind = (tensor.dtype, tensor.is_conj(), tensor.is_neg(), tensor._is_zerotensor())
    return Bits(kind, tuple(tensor.shape), tensor.stride(), raw.tobytes())


def sparse_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return the strided tensors inside a sparse one."""
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def state(tensor: torch.Tensor) -> dict[str, Any]:
    """Return what a person can read off a tensor after a pass."""
    grad = gradient(tensor)
    versions = (tensor._version, None if grad is None else grad._version)
    return {"value": bits(tensor), "grad": bits(grad), "versions": versions}


def gradient(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return `.grad` without the warning about intermediate tensors that kept none."""
    return tensor.grad if readable(tensor) and (tensor.is_leaf or tensor.retains_grad) else None


def readable(tensor: torch.Tensor) -> bool:
    """Tell whether the tensor still knows its `grad_fn`: unbind's outputs forget it when one is changed in place."""
    try:
        return tensor.grad_fn is not tensor
    except RuntimeError:
        return False


def sharing(tensors: Mapping[str, torch.Tensor | None]) -> list[list[str]]:
    """Return the groups of names whose tensors lie in one storage."""
    groups: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        if tensor is not None and tensor.layout is torch.strided:
            groups.setdefault(storage(tensor), []).append(name)
    return sorted(names for names in groups.values() if len(names) > 1)


def storage(tensor: torch.Tensor) -> int:
    """Return where a tensor's storage begins, without the storage object: making one counts as sharing it."""
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


def frames(traceback: TracebackType | None) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and function of every frame of a traceback."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        yield code.co_filename, traceback.tb_lineno, code.co_name
        traceback = traceback.tb_next


def failure(error: BaseException | None) -> dict[str, Any] | None:
    """Return an exception's type, text, chain and traceback."""
    if error is None:
        return None
    return {
        "type": type(error).__name__,
        "text": str(error),
        "cause": failure(error.__cause__),
        "context": failure(error.__context__),
        "notes": getattr(error, "__notes__", None),
        "frames": list(frames(error.__traceback__)),
    }


def package_frames(failed: Mapping[str, Any] | None) -> list[tuple[str, int, str]]:
    """Return the frames of hookviz in a failure: there must be none."""
    found = failed["frames"] if failed else []
    return [frame for frame in found if frame[0].startswith(PACKAGE)]


def graph_nodes(roots: Iterable[torch.Tensor]) -> list[Node]:
    """Return every node that can be reached from the tensors, nearest first."""
    found = [get_gradient_edge(root).node for root in roots if root.requires_grad and readable(root)]
    nodes = list(dict.fromkeys(found))
    seen = set(nodes)
    for node in nodes:
        fresh = [after for after, _ in node.next_functions if after is not None and after not in seen]
        seen.update(fresh)
        nodes.extend(dict.fromkeys(fresh))
    return nodes


def node_dicts(node: Node) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return a node's dicts of pre- and post-hooks, which only a handle leads to."""
    handles = node.register_prehook(ignore), node.register_hook(ignore)
    before, after = (handle.hooks_dict_ref() for handle in handles)
    for handle in handles:
        handle.remove()
    assert before is not None and after is not None
    return before, after


def ignore(*arguments: Any) -> None:
    """Stand in for a hook."""


def hook_names(hooks: Mapping[int, Any] | None) -> list[str] | None:
    """Return the names of the hooks in a dict, in order, or None where there is no dict."""
    if hooks is None:
        return None
    return [getattr(hook, "__name__", type(hook).__name__) for hook in hooks.values()]


def tensor_hooks(tensor: torch.Tensor) -> tuple[list[str] | None, list[str] | None]:
    """Return the names of the hooks that a tensor keeps."""
    return hook_names(tensor._backward_hooks), hook_names(tensor._post_accumulate_grad_hooks)


def node_hooks(node: Node) -> tuple[str, list[str] | None, list[str] | None, list[str]]:
    """Return the names of the hooks and of the metadata that a node keeps."""
    before, after = node_dicts(node)
    return node.name(), hook_names(before), hook_names(after), sorted(map(str, node.metadata))


def hooks_left(tensors: Iterable[torch.Tensor]) -> dict[str, Any]:
    """Return every hook that is still on the tensors and on the nodes behind them."""
    tensors = list(tensors)
    nodes = [node_hooks(node) for node in graph_nodes(tensors)]
    return {"tensors": [tensor_hooks(tensor) for tensor in tensors], "nodes": nodes}


@contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Collect torch's warnings, each time and not only once, and fail when hookviz says that it could not observe."""
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        torch.set_warn_always(always)
    given_up = [str(warning.message) for warning in caught if issubclass(warning.category, hv.HookvizWarning)]
    assert not given_up, f"the pass was not observed: {given_up}"


def warned(caught: list[warnings.WarningMessage]) -> list[tuple[str, str, str, int]]:
    """Return what the warnings said, and which line they point at: torch counts frames for that."""
    texts = (re.sub("0x[0-9a-f]+", "0x", str(warning.message)) for warning in caught)
    return [(w.category.__name__, text, w.filename, w.lineno) for w, text in zip(caught, texts, strict=True)]


@contextmanager
def uncollected() -> Iterator[None]:
    """Let only reference counts free memory.

    A hook on a node that nothing else holds lives as long as the circle between the two: until the collector comes.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        assert not gc.isenabled(), "the garbage collector was switched on"
    finally:
        if was_on:
            gc.enable()


def first_difference(one: Any, other: Any, path: str = "") -> str | None:
    """Say where two reports part, or return None when they are equal."""
    if one == other:
        return None
    if isinstance(one, Bits) or isinstance(other, Bits) or type(one) is not type(other):
        return f"{path or 'report'}:\n  plain    {one!r}\n  recorded {other!r}"
    if isinstance(one, dict) and one.keys() == other.keys():
        return first_of(first_difference(one[key], other[key], f"{path}[{key!r}]") for key in one)
    if isinstance(one, (list, tuple)) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return first_of((first_difference(a, b, f"{path}[{index}]") for index, (a, b) in pairs))
    return f"{path or 'report'}:\n  plain    {one!r}\n  recorded {other!r}"


def first_of(found: Iterable[str | None]) -> str | None:
    """Return the first that is not None."""
    return next((text for text in found if text is not None), None)


def same(one: Any, other: Any, what: Sequence[Any] | str = "") -> None:
    """Assert that two reports are equal, and show the first place where they are not."""
    difference = first_difference(one, other)
    assert difference is None, f"{what}\ndiffers at {difference}"
