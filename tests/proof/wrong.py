"""Recorders with one deliberate fault each, which the comparison of runs must detect."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.autograd import graph as autograd_graph
from torch.autograd.graph import Node

import hookviz as hv
from hookviz.recorder.followers.hook_entry import HookEntry
from hookviz.recorder.followers.hook_ledger import HookFirings, HookLedger

from .compare import graph_nodes

Engine = Callable[..., Any]
Register = Callable[[Node], Any]
ENGINE: Engine = autograd_graph._engine_run_backward
kept_gradients: list[Any] = []


def replacing_engine(replace: Callable[[Engine], Engine]) -> Callable[..., AbstractContextManager[None]]:
    """Return a watch that replaces the function with which torch calls its engine."""

    @contextmanager
    def watch(*_: Any) -> Iterator[None]:
        torch.autograd._engine_run_backward = autograd_graph._engine_run_backward = replace(ENGINE)
        try:
            yield
        finally:
            torch.autograd._engine_run_backward = autograd_graph._engine_run_backward = ENGINE

    return watch


def on_every_node(register: Register, remove_afterwards: bool = True) -> Callable[..., AbstractContextManager[None]]:
    """Return a watch that registers a hook on every node, and hides its own traceback frame."""

    def replace(engine: Engine) -> Engine:
        def run(roots: Any, *arguments: Any, **keywords: Any) -> Any:
            handles = [register(node) for node in graph_nodes(roots)]
            try:
                return engine(roots, *arguments, **keywords)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            finally:
                for handle in handles if remove_afterwards else ():
                    handle.remove()

        return run

    return replacing_engine(replace)


def gradients(values: Any) -> list[torch.Tensor]:
    """Return the gradients among the arguments of a node hook."""
    return [value for value in values if value is not None]


def with_node_pre_hooks(change: Callable[[tuple[Any, ...]], Any]) -> Callable[..., AbstractContextManager[None]]:
    """Return a watch that registers ``change`` as a pre-hook on every node."""
    return on_every_node(lambda node: node.register_prehook(change))


def bump_version(values: tuple[Any, ...]) -> None:
    """Write each gradient's own numbers into it, which increases its version."""
    for grad in gradients(values):
        with torch.no_grad():
            grad.copy_(grad.clone())


def copy_gradients(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if grad is None else grad.clone() for grad in values)


def add_zero(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add 0 to each gradient, which turns -0 into 0."""
    return tuple(None if grad is None else grad + 0.0 for grad in values)


def add_traceback_frame(engine: Engine) -> Engine:
    """Call the engine from a function that is visible in tracebacks."""

    def run(*arguments: Any, **keywords: Any) -> Any:
        return engine(*arguments, **keywords)

    return run


def swallow_exceptions(engine: Engine) -> Engine:

    def run(*arguments: Any, **keywords: Any) -> Any:
        try:
            return engine(*arguments, **keywords)
        except Exception:
            return (None,) * 9

    return run


def replace_exception(engine: Engine) -> Engine:

    def run(*arguments: Any, **keywords: Any) -> Any:
        try:
            return engine(*arguments, **keywords)
        except Exception as error:
            raise RuntimeError("the pass failed") from error

    return run


def reverse_root_hooks(engine: Engine) -> Engine:

    def run(roots: Any, *arguments: Any, **keywords: Any) -> Any:
        for root in roots:
            hooks = getattr(root, "_backward_hooks", None) or {}
            for key, hook in reversed(list(hooks.items())):
                del hooks[key]
                hooks[key] = hook
        return engine(roots, *arguments, **keywords)

    return run


def wrap_root_hooks(engine: Engine) -> Engine:

    def wrap(hook: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(hook)
        def wrapper(*values: Any) -> Any:
            return hook(*values)

        return wrapper

    def run(roots: Any, *arguments: Any, **keywords: Any) -> Any:
        for root in roots:
            hooks = getattr(root, "_backward_hooks", None) or {}
            hooks.update({key: wrap(hook) for key, hook in hooks.items()})
        return engine(roots, *arguments, **keywords)

    return run


def use_random_number(engine: Engine) -> Engine:

    def run(*arguments: Any, **keywords: Any) -> Any:
        torch.rand(1)
        return engine(*arguments, **keywords)

    return run


@contextmanager
def leave_patch_behind(*_: Any) -> Iterator[None]:
    torch.autograd.graph._engine_run_backward = functools.partial(ENGINE)
    yield


def keep_gradients(values: tuple[Any, ...]) -> None:
    kept_gradients.extend(gradients(values))


def touch_storage(values: tuple[Any, ...]) -> None:
    """Create a Python object for every storage, which then counts as shared, so that torch does not sum in place."""
    for grad in gradients(values):
        if grad.layout is torch.strided:
            grad.untyped_storage()


def do_nothing(*values: Any, **options: Any) -> None:
    """Change nothing."""


WRONG: dict[str, Callable[..., AbstractContextManager[Any]]] = {
    "holds gradients": with_node_pre_hooks(keep_gradients),
    "bumps versions": with_node_pre_hooks(bump_version),
    "copies gradients": with_node_pre_hooks(copy_gradients),
    "loses the sign of a zero": with_node_pre_hooks(add_zero),
    "touches storages": with_node_pre_hooks(touch_storage),
    "leaves hooks behind": on_every_node(lambda node: node.register_hook(do_nothing), remove_afterwards=False),
    "adds a frame": replacing_engine(add_traceback_frame),
    "swallows exceptions": replacing_engine(swallow_exceptions),
    "changes exceptions": replacing_engine(replace_exception),
    "changes the order of hooks": replacing_engine(reverse_root_hooks),
    "wraps hooks": replacing_engine(wrap_root_hooks),
    "uses random numbers": replacing_engine(use_random_number),
}
"""Fault → a recorder with that fault, which must change the report of some program."""

HARMLESS = with_node_pre_hooks(do_nothing)
"""A passive observer, which must not change any report."""


def recording_with(owner: type, name: str, replacement: Any) -> Callable[..., AbstractContextManager[hv.Trace]]:
    """Return a watch that records with one of hookviz's own functions replaced."""

    @contextmanager
    def watch(*models: torch.nn.Module) -> Iterator[hv.Trace]:
        original = vars(owner)[name]
        setattr(owner, name, replacement)
        try:
            with hv.record(*models) as trace:
                yield trace
        finally:
            setattr(owner, name, original)

    return watch


def see_frozen_tensor(entry: Any, tensor: torch.Tensor, start: Any) -> bool:
    """Take every tensor with a hook for one that does not require grad."""
    entry.seen += 1
    entry.frozen += 1
    return False


WRONG_ABOUT_SILENCE: dict[str, Callable[..., AbstractContextManager[hv.Trace]]] = {
    "forgets removed hooks": recording_with(HookLedger, "removed", do_nothing),
    "forgets hooks on tensors without a name": recording_with(HookLedger, "tensor_hook_added", do_nothing),
    "calls hooks silent that fired": recording_with(HookFirings, "note_all", do_nothing),
    "takes every tensor for frozen": recording_with(HookEntry, "see", see_frozen_tensor),
}
"""Fault → a recorder with that fault, which must say something wrong about a hook that did not fire, or did."""
