"""The small autograd engine of lesson 10 in full: the judge puts a learner's part in the place of one of its own."""

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from torch.utils.hooks import RemovableHandle

Hooks = OrderedDict[int, Callable[..., Any]]


def call_hook(hook: Callable[..., Any], value: Any) -> Any:
    return hook(value)


def register(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    """Keep a hook under a number of its own, and return the handle that can take it off."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def through(hooks: Hooks, value: Any, call: Callable[..., Any] = call_hook) -> Any:
    """Send a value through hooks, one after the other; what a hook returns replaces the value, unless it is None."""
    for hook in list(hooks.values()):
        returned = call(hook, value)
        if returned is not None:
            value = returned
    return value


class Node:
    """One operation, seen from behind: it gets a gradient, and sends gradients to the next nodes."""

    made = 0

    def __init__(self, send: Callable[[Any], tuple[Any, ...]], next_nodes: Sequence[Any]) -> None:
        self.send = send
        self.next_nodes = next_nodes
        self.tensor_hooks: Hooks = OrderedDict()
        self.retain_hooks: Hooks = OrderedDict()
        self.pre_hooks: Hooks = OrderedDict()
        self.post_hooks: Hooks = OrderedDict()
        Node.made += 1
        self.number = Node.made if next_nodes else math.inf

    def __lt__(self, other: Any) -> bool:
        return bool(self.number > other.number)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return register(self.pre_hooks, hook)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return register(self.post_hooks, hook)

    def run(self, grad: Any) -> Any:
        """Run the hooks and the node; return what it sends."""
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        (grad,) = through(self.pre_hooks, (grad,))
        return self.send_through_post_hooks(grad)

    def send_through_post_hooks(self, grad: Any) -> Any:
        def call_post_hook(hook: Callable[..., Any], sent: Any) -> Any:
            return hook(sent, (grad,))

        return through(self.post_hooks, self.send(grad), call_post_hook)


class Value:
    """A number that remembers how it was computed."""

    node_class: Any = Node

    def __init__(
        self, data: float, send: Callable[[Any], tuple[Any, ...]] | None = None, inputs: Sequence["Value"] = ()
    ) -> None:
        self.data = data
        self.grad: Any = None
        self.grad_fn: Any = self.node_class(send or self.accumulate, [value.grad_fn for value in inputs])

    def __add__(self, other: "Value") -> "Value":
        return type(self)(self.data + other.data, lambda grad: (grad, grad), (self, other))

    def __mul__(self, other: "Value") -> "Value":
        return type(self)(self.data * other.data, lambda grad: (grad * other.data, grad * self.data), (self, other))

    def relu(self) -> "Value":
        return type(self)(max(self.data, 0.0), lambda grad: (grad if self.data > 0 else 0.0,), (self,))

    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        """Add to ``grad``, and send nothing."""
        self.grad = grad if self.grad is None else self.grad + grad
        return ()

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return register(self.grad_fn.tensor_hooks, hook)

    def retain_grad(self) -> None:
        def keep(grad: Any) -> None:
            self.accumulate(grad)

        if self.grad_fn.next_nodes:
            self.grad_fn.retain_hooks[0] = keep


def count_arrows(root: Any) -> Counter[Any]:
    """Count the arrows that lead to each node behind ``root``."""
    arrows: Counter[Any] = Counter()
    nodes = [root]
    for node in nodes:
        for target in node.next_nodes:
            if target not in arrows:
                nodes.append(target)
            arrows[target] += 1
    return arrows


def backward(value: Any, grad: float = 1.0, buffer: dict[Any, Any] | None = None) -> None:
    """Run each node behind ``value`` once, after all its gradients came; of ready nodes, the last made goes first.

    Args:
        value: where the pass begins.
        grad: the gradient it begins with.
        buffer: node → what has arrived there and waits for it; empty before and after the pass.
    """
    if buffer is None:
        buffer = {}
    arrows = count_arrows(value.grad_fn)
    buffer[value.grad_fn] = grad
    ready = [value.grad_fn]
    while ready:
        node = heappop(ready)
        sent = node.run(buffer.pop(node))
        for target, gradient in zip(node.next_nodes, sent, strict=True):
            buffer[target] = buffer.get(target, 0.0) + gradient
            arrows[target] -= 1
            if arrows[target] == 0:
                heappush(ready, target)


def pass_on(grad: Any) -> tuple[Any, ...]:
    """What a node sends that changes nothing."""
    return (grad,)


class Module:
    """Wraps a function of one value, and calls four kinds of hooks around it."""

    def __init__(self, forward: Callable[[Any], Any]) -> None:
        self.forward = forward
        self.forward_pre_hooks: Hooks = OrderedDict()
        self.forward_hooks: Hooks = OrderedDict()
        self.backward_pre_hooks: Hooks = OrderedDict()
        self.backward_hooks: Hooks = OrderedDict()
        self.grad_output: Any = None

    def __call__(self, x: Any) -> Any:
        """Run the forward pre-hooks; then, between two nodes for the backward hooks, forward and the forward hooks."""

        def call_pre_hook(hook: Callable[..., Any], args: Any) -> Any:
            return hook(self, args)

        (x,) = through(self.forward_pre_hooks, (x,), call_pre_hook)
        x = Value(x.data, pass_on, (x,))
        x.grad_fn.register_hook(self.at_the_entrance)
        output = self.forward(x)

        def call_forward_hook(hook: Callable[..., Any], output: Any) -> Any:
            return hook(self, (x,), output)

        output = through(self.forward_hooks, output, call_forward_hook)
        output = Value(output.data, pass_on, (output,))
        output.grad_fn.register_hook(self.at_the_exit)
        return output

    def at_the_exit(self, sent: Any, received: Any) -> Any:
        """The post-hook of the node at the exit."""

        def call_backward_pre_hook(hook: Callable[..., Any], grads: Any) -> Any:
            return hook(self, grads)

        self.grad_output = through(self.backward_pre_hooks, received, call_backward_pre_hook)
        return self.grad_output

    def at_the_entrance(self, sent: Any, received: Any) -> Any:
        """The post-hook of the node at the entrance."""

        def call_backward_hook(hook: Callable[..., Any], grads: Any) -> Any:
            return hook(self, grads, self.grad_output)

        return through(self.backward_hooks, sent, call_backward_hook)
