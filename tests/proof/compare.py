"""Describe the results and side effects of a pass as plain data, to compare a recorded run with a plain one."""

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

Watch = Callable[..., AbstractContextManager[Any]]
"""A context manager around a pass: `hv.record`, `nullcontext`, or a deliberately faulty recorder."""


def plain(*_: Any) -> AbstractContextManager[Any]:
    return nullcontext()


SAME_SIZE_DTYPES = {torch.bfloat16: torch.int16, torch.complex32: torch.int32}
PACKAGE = str(Path(hv.__file__).parent)


def seed_cpu_generator(seed: int) -> None:
    """Seed the random numbers of the CPU.

    ``torch.manual_seed`` also seeds every other kind of device, and captures the stack for those not yet initialised,
    which takes longer than the tested code.
    """
    torch.default_generator.manual_seed(seed)


class Bits(NamedTuple):
    """The properties of a tensor that two runs must share, down to the sign of a zero."""

    kind: tuple[Any, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: bytes

    def __repr__(self) -> str:
        dtype = self.kind[0]
        numbers = torch.frombuffer(bytearray(self.data), dtype=dtype).tolist() if self.data else []
        return f"<{dtype} {list(self.shape)} strides {list(self.strides)}: {numbers[:16]}>"


def bits(tensor: torch.Tensor | None) -> Any:
    if tensor is None:
        return None
    if tensor.layout is not torch.strided:
        return (str(tensor.layout), tuple(tensor.shape), *map(bits, sparse_parts(tensor)))
    dense = tensor.detach().resolve_conj().resolve_neg()
    raw = dense.view(SAME_SIZE_DTYPES.get(dense.dtype, dense.dtype)).numpy(force=True)
    kind = (tensor.dtype, tensor.is_conj(), tensor.is_neg(), tensor._is_zerotensor())
    return Bits(kind, tuple(tensor.shape), tensor.stride(), raw.tobytes())


def sparse_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    tensor = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def tensor_state(tensor: torch.Tensor) -> dict[str, Any]:
    """Return the visible state of a tensor after a pass."""
    grad = gradient(tensor)
    versions = (tensor._version, None if grad is None else grad._version)
    return {"value": bits(tensor), "grad": bits(grad), "versions": versions}


def gradient(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return `.grad` without the warning for intermediate tensors."""
    return tensor.grad if has_valid_grad_fn(tensor) and (tensor.is_leaf or tensor.retains_grad) else None


def has_valid_grad_fn(tensor: torch.Tensor) -> bool:
    """Return whether reading `grad_fn` works: it raises on outputs of unbind after one is changed in place."""
    try:
        return tensor.grad_fn is not tensor
    except RuntimeError:
        return False


def shared_storage_groups(tensors: Mapping[str, torch.Tensor | None]) -> list[list[str]]:
    groups: dict[int, list[str]] = {}
    for name, tensor in tensors.items():
        if tensor is not None and tensor.layout is torch.strided:
            groups.setdefault(storage_address(tensor), []).append(name)
    return sorted(names for names in groups.values() if len(names) > 1)


def storage_address(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage, without the storage object, which would count as a reference."""
    return tensor.data_ptr() - tensor.storage_offset() * tensor.element_size()


def traceback_frames(traceback: TracebackType | None) -> Iterator[tuple[str, int, str]]:
    """Yield file, line and function of every frame of a traceback."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        yield code.co_filename, traceback.tb_lineno, code.co_name
        traceback = traceback.tb_next


def describe_error(error: BaseException | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {
        "type": type(error).__name__,
        "text": str(error),
        "cause": describe_error(error.__cause__),
        "context": describe_error(error.__context__),
        "notes": getattr(error, "__notes__", None),
        "frames": list(traceback_frames(error.__traceback__)),
    }


def package_frames(error_report: Mapping[str, Any] | None) -> list[tuple[str, int, str]]:
    """Return the frames of hookviz in the traceback of an error report; a correct recorder leaves none."""
    found = error_report["frames"] if error_report else []
    return [frame for frame in found if frame[0].startswith(PACKAGE)]


def graph_nodes(roots: Iterable[torch.Tensor]) -> list[Node]:
    """Return all nodes reachable from the tensors, in breadth-first order."""
    found = [get_gradient_edge(root).node for root in roots if root.requires_grad and has_valid_grad_fn(root)]
    nodes = list(dict.fromkeys(found))
    visited = set(nodes)
    for node in nodes:
        new_nodes = [after for after, _ in node.next_functions if after is not None and after not in visited]
        visited.update(new_nodes)
        nodes.extend(dict.fromkeys(new_nodes))
    return nodes


def node_dicts(node: Node) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return a node's dicts of pre- and post-hooks, which only handles give access to."""
    handles = node.register_prehook(do_nothing), node.register_hook(do_nothing)
    before, after = (handle.hooks_dict_ref() for handle in handles)
    for handle in handles:
        handle.remove()
    assert before is not None and after is not None
    return before, after


def do_nothing(*arguments: Any) -> None:
    """A hook that does nothing."""


def hook_names(hooks: Mapping[int, Any] | None) -> list[str] | None:
    """Return the names of the hooks in a dict, in order, or None without a dict."""
    if hooks is None:
        return None
    return [getattr(hook, "__name__", type(hook).__name__) for hook in hooks.values()]


def tensor_hooks(tensor: torch.Tensor) -> tuple[list[str] | None, list[str] | None]:
    return hook_names(tensor._backward_hooks), hook_names(tensor._post_accumulate_grad_hooks)


def node_hooks(node: Node) -> tuple[str, list[str] | None, list[str] | None, list[str]]:
    """Return the names of the hooks that a node keeps, and of its metadata but for the recording's own."""
    before, after = node_dicts(node)
    return node.name(), hook_names(before), hook_names(after), sorted(map(str, node.metadata.keys() - {"hookviz"}))


def remaining_hooks(tensors: Iterable[torch.Tensor]) -> dict[str, Any]:
    tensors = list(tensors)
    nodes = [node_hooks(node) for node in graph_nodes(tensors)]
    return {"tensors": [tensor_hooks(tensor) for tensor in tensors], "nodes": nodes}


@contextmanager
def collect_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Collect all warnings, including torch's one-time warnings, and fail on a HookvizWarning about the recording."""
    warn_always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        torch.set_warn_always(warn_always)
    not_observed = [str(warning.message) for warning in caught if issubclass(warning.category, hv.HookvizWarning)]
    assert not not_observed, f"the pass was not observed: {not_observed}"


def describe_warnings(caught: list[warnings.WarningMessage]) -> list[tuple[str, str, str, int]]:
    """Return category, text and location of the warnings; torch counts frames to find the location."""
    texts = (re.sub("0x[0-9a-f]+", "0x", str(warning.message)) for warning in caught)
    return [(w.category.__name__, text, w.filename, w.lineno) for w, text in zip(caught, texts, strict=True)]


@contextmanager
def garbage_collection_off() -> Iterator[None]:
    """Switch the garbage collector off, so that only reference counts free memory.

    A hook and its node can form a reference cycle, which would live until the next collection.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        assert not gc.isenabled(), "the garbage collector was switched on"
    finally:
        if was_enabled:
            gc.enable()


def first_difference(plain_report: Any, recorded_report: Any, path: str = "") -> str | None:
    """Return a description of the first difference between two reports, or None if they are equal."""
    if plain_report == recorded_report:
        return None
    if (
        isinstance(plain_report, Bits)
        or isinstance(recorded_report, Bits)
        or type(plain_report) is not type(recorded_report)
    ):
        return f"{path or 'report'}:\n  plain    {plain_report!r}\n  recorded {recorded_report!r}"
    if isinstance(plain_report, dict) and plain_report.keys() == recorded_report.keys():
        return first_not_none(
            first_difference(plain_report[key], recorded_report[key], f"{path}[{key!r}]") for key in plain_report
        )
    if isinstance(plain_report, (list, tuple)) and len(plain_report) == len(recorded_report):
        pairs = enumerate(zip(plain_report, recorded_report, strict=True))
        return first_not_none((first_difference(a, b, f"{path}[{index}]") for index, (a, b) in pairs))
    return f"{path or 'report'}:\n  plain    {plain_report!r}\n  recorded {recorded_report!r}"


def first_not_none(found: Iterable[str | None]) -> str | None:
    return next((text for text in found if text is not None), None)


def same(plain_report: Any, recorded_report: Any, context: Sequence[Any] | str = "") -> None:
    """Assert that two reports are equal, and show the first difference otherwise."""
    difference = first_difference(plain_report, recorded_report)
    assert difference is None, f"{context}\ndiffers at {difference}"
