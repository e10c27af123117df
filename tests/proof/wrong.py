"""Recorders that are wrong on purpose, each in one way: a proof that lets them pass would prove nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.autograd import graph as autograd_graph
from torch.autograd.graph import Node, get_gradient_edge

Engine = Callable[..., Any]
Look = Callable[[Node], Any]
ENGINE: Engine = autograd_graph._engine_run_backward
kept: list[Any] = []


def node_of(root: Any) -> Node | None:
    """Return a root's node, or None where torch is going to refuse the root."""
    try:
        return root.node if isinstance(root, autograd_graph.GradientEdge) else get_gradient_edge(root).node
    except RuntimeError:
        return None


def nodes_below(roots: Any) -> list[Node]:
    """Return the nodes that a pass from these roots can reach."""
    nodes = [node for root in roots if (node := node_of(root)) is not None]
    for node in nodes:
        nodes.extend(after for after, _ in node.next_functions if after is not None and after not in nodes)
    return nodes


def around(replace: Callable[[Engine], Engine]) -> Callable[[], AbstractContextManager[None]]:
    """Return a watcher that puts another function where torch calls its engine."""

    @contextmanager
    def watch() -> Iterator[None]:
        torch.autograd._engine_run_backward = autograd_graph._engine_run_backward = replace(ENGINE)
        try:
            yield
        finally:
            torch.autograd._engine_run_backward = autograd_graph._engine_run_backward = ENGINE

    return watch


def on_every_node(install: Look, take_off: bool = True) -> Callable[[], AbstractContextManager[None]]:
    """Return a watcher that registers something on every node, and hides its own frame."""

    def replace(engine: Engine) -> Engine:
        def run(roots: Any, *arguments: Any, **named: Any) -> Any:
            handles = [install(node) for node in nodes_below(roots)]
            try:
                return engine(roots, *arguments, **named)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            finally:
                for handle in handles if take_off else ():
                    handle.remove()

        return run

    return around(replace)


def gradients(values: Any) -> list[torch.Tensor]:
    """Return the gradients that a node hook was given."""
    return [value for value in values if value is not None]


def before_nodes(change: Callable[[tuple[Any, ...]], Any]) -> Callable[[], AbstractContextManager[None]]:
    """Return a watcher whose pre-hooks do what no observer may do."""
    return on_every_node(lambda node: node.register_prehook(change))


def bump(values: tuple[Any, ...]) -> None:
    """Write the gradient's own numbers into it."""
    for grad in gradients(values):
        with torch.no_grad():
            grad.copy_(grad.clone())


def copied(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Hand on a copy, equal in every number."""
    return tuple(None if grad is None else grad.clone() for grad in values)


def plus_zero(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Hand on the gradient plus 0, which turns -0 into 0."""
    return tuple(None if grad is None else grad + 0.0 for grad in values)


def frame_too_many(engine: Engine) -> Engine:
    """Let the wrapper be seen in tracebacks."""

    def run(*arguments: Any, **named: Any) -> Any:
        return engine(*arguments, **named)

    return run


def without_exceptions(engine: Engine) -> Engine:
    """Swallow what is raised."""

    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return engine(*arguments, **named)
        except Exception:
            return (None,) * 9

    return run


def other_text(engine: Engine) -> Engine:
    """Raise another exception from the one that was raised."""

    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return engine(*arguments, **named)
        except Exception as error:
            raise RuntimeError("the pass failed") from error

    return run


def other_order(engine: Engine) -> Engine:
    """Turn round the order of the hooks on the roots."""

    def run(roots: Any, *arguments: Any, **named: Any) -> Any:
        for root in roots:
            hooks = getattr(root, "_backward_hooks", None) or {}
            for key, hook in reversed(list(hooks.items())):
                del hooks[key]
                hooks[key] = hook
        return engine(roots, *arguments, **named)

    return run


def wrapped_hooks(engine: Engine) -> Engine:
    """Put a function of our own in the place of each hook on the roots."""

    def wrap(hook: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(hook)
        def wrapper(*values: Any) -> Any:
            return hook(*values)

        return wrapper

    def run(roots: Any, *arguments: Any, **named: Any) -> Any:
        for root in roots:
            hooks = getattr(root, "_backward_hooks", None) or {}
            hooks.update({key: wrap(hook) for key, hook in hooks.items()})
        return engine(roots, *arguments, **named)

    return run


def random_numbers(engine: Engine) -> Engine:
    """Use up a random number of the user's."""

    def run(*arguments: Any, **named: Any) -> Any:
        torch.rand(1)
        return engine(*arguments, **named)

    return run


@contextmanager
def patched_for_good() -> Iterator[None]:
    """Leave a patch of torch behind."""
    torch.autograd.graph._engine_run_backward = functools.partial(ENGINE)
    yield


def keep(values: tuple[Any, ...]) -> None:
    """Hold on to every gradient."""
    kept.extend(gradients(values))


def touch_storage(values: tuple[Any, ...]) -> None:
    """Make a Python object for every storage: it then counts as shared, and sums are no longer made in place."""
    for grad in gradients(values):
        if grad.layout is torch.strided:
            grad.untyped_storage()


def ignore(*values: Any) -> None:
    """Do nothing."""


WRONG: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "holds gradients": before_nodes(keep),
    "bumps versions": before_nodes(bump),
    "copies gradients": before_nodes(copied),
    "loses the sign of a zero": before_nodes(plus_zero),
    "touches storages": before_nodes(touch_storage),
    "leaves hooks behind": on_every_node(lambda node: node.register_hook(ignore), take_off=False),
    "adds a frame": around(frame_too_many),
    "swallows exceptions": around(without_exceptions),
    "changes exceptions": around(other_text),
    "changes the order of hooks": around(other_order),
    "wraps hooks": around(wrapped_hooks),
    "uses random numbers": around(random_numbers),
}
"""Wrong in what a program shows."""

HARMLESS = before_nodes(ignore)
"""Looks at every gradient and changes nothing: the proof must let it pass."""
