"""Parts of the engine of lesson 10 with a usual mistake each, by which a learner's mistake is recognised."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from hookviz.course.engine import Module, Node, Value, count_arrows, pass_on, through


class RetainsFirst(Node):
    def run(self, grad: Any) -> Any:
        grad = through(self.retain_hooks, grad)
        grad = through(self.tensor_hooks, grad)
        (grad,) = through(self.pre_hooks, (grad,))
        return self.send_through_post_hooks(grad)


class RetainsLast(Node):
    def run(self, grad: Any) -> Any:
        grad = through(self.tensor_hooks, grad)
        (grad,) = through(self.pre_hooks, (grad,))
        grad = through(self.retain_hooks, grad)
        return self.send_through_post_hooks(grad)


class PreHooksFirst(Node):
    def run(self, grad: Any) -> Any:
        (grad,) = through(self.pre_hooks, (grad,))
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        return self.send_through_post_hooks(grad)


class LosesPreHooks(Node):
    def run(self, grad: Any) -> Any:
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        through(self.pre_hooks, (grad,))
        return self.send_through_post_hooks(grad)


class DoesNotUnpack(Node):
    def run(self, grad: Any) -> Any:
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        grad = through(self.pre_hooks, (grad,))
        return self.send_through_post_hooks(grad)


class GivesPreHooksNoTuple(Node):
    """Its pre-hooks get the bare gradient."""

    def run(self, grad: Any) -> Any:
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        grad = through(self.pre_hooks, grad)
        return self.send_through_post_hooks(grad)


class CallsPostHooksWithOne(Node):
    """Its post-hooks get what is sent, and not what was received."""

    def send_through_post_hooks(self, grad: Any) -> Any:
        return through(self.post_hooks, self.send(grad))


class GivesOldGradient(Node):
    """Its post-hooks get the gradient from before the pre-hooks."""

    def run(self, grad: Any) -> Any:
        grad = through(self.tensor_hooks, grad)
        grad = old = through(self.retain_hooks, grad)
        (grad,) = through(self.pre_hooks, (grad,))

        def call_post_hook(hook: Callable[..., Any], sent: Any) -> Any:
            return hook(sent, (old,))

        return through(self.post_hooks, self.send(grad), call_post_hook)


class GivesNoTuple(Node):
    def send_through_post_hooks(self, grad: Any) -> Any:
        def call_post_hook(hook: Callable[..., Any], sent: Any) -> Any:
            return hook(sent, grad)

        return through(self.post_hooks, self.send(grad), call_post_hook)


class LosesPostHooks(Node):
    def send_through_post_hooks(self, grad: Any) -> Any:
        sent = self.send(grad)
        for hook in list(self.post_hooks.values()):
            hook(sent, (grad,))
        return sent


class HasNoPostHooks(Node):
    def send_through_post_hooks(self, grad: Any) -> Any:
        return self.send(grad)


class HasNoPreHooks(Node):
    def run(self, grad: Any) -> Any:
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        return self.send_through_post_hooks(grad)


class HasNoHooks(Node):
    def run(self, grad: Any) -> Any:
        return self.send(grad)


class ExchangesTuples(Node):
    def send_through_post_hooks(self, grad: Any) -> Any:
        def call_post_hook(hook: Callable[..., Any], sent: Any) -> Any:
            return hook((grad,), sent)

        return through(self.post_hooks, self.send(grad), call_post_hook)


class HooksAfterNode(Node):
    def run(self, grad: Any) -> Any:
        sent = self.send_through_post_hooks(grad)
        grad = through(self.tensor_hooks, grad)
        grad = through(self.retain_hooks, grad)
        through(self.pre_hooks, (grad,))
        return sent


class Overwrites(Value):
    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        self.grad = grad
        return ()


class KeepsFirst(Value):
    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        if self.grad is None:
            self.grad = grad
        return ()


class KeepsNothing(Value):
    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        return ()


def does_not_wait(value: Any, grad: float = 1.0) -> None:
    """Run a node whenever something arrives."""
    ready = [(value.grad_fn, grad)]
    while ready:
        node, arrived = ready.pop(0)
        ready += zip(node.next_nodes, node.run(arrived), strict=True)


def recurses(value: Any, grad: float = 1.0) -> None:
    """Follow each arrow at once, by a function that calls itself."""

    def visit(node: Any, grad: Any) -> None:
        for target, part in zip(node.next_nodes, node.run(grad), strict=True):
            visit(target, part)

    visit(value.grad_fn, grad)


def _run_queue(
    value: Any, grad: float, take: Callable[[list[Any]], Any], add: Callable[[Any, Any], Any], waits: bool = True
) -> None:
    arrows = count_arrows(value.grad_fn)
    buffer = {value.grad_fn: grad}
    ready = [value.grad_fn]
    while ready:
        node = take(ready)
        sent = node.run(buffer.pop(node))
        for target, part in zip(node.next_nodes, sent, strict=True):
            buffer[target] = add(buffer.get(target, 0.0), part)
            arrows[target] -= 1
            if (arrows[target] == 0 or not waits) and target not in ready:
                heappush(ready, target)


def forgets_what_arrived(value: Any, grad: float = 1.0) -> None:
    _run_queue(value, grad, heappop, lambda before, part: part)


def takes_newest(value: Any, grad: float = 1.0) -> None:
    _run_queue(value, grad, lambda ready: ready.pop(), lambda before, part: before + part)


def takes_oldest(value: Any, grad: float = 1.0) -> None:
    _run_queue(value, grad, lambda ready: ready.pop(0), lambda before, part: before + part)


def waits_for_one(value: Any, grad: float = 1.0) -> None:
    """Put a node into the queue when the first part arrives."""
    _run_queue(value, grad, heappop, lambda before, part: before + part, waits=False)


def queues_each_part(value: Any, grad: float = 1.0) -> None:
    """Put a node into the queue for each part that arrives."""
    buffer = {value.grad_fn: grad}
    ready = [value.grad_fn]
    while ready:
        node = heappop(ready)
        for target, part in zip(node.next_nodes, node.run(buffer.pop(node)), strict=True):
            buffer[target] = buffer.get(target, 0.0) + part
            heappush(ready, target)


def stops_early(value: Any, grad: float = 1.0) -> None:
    value.grad_fn.run(grad)


def does_nothing(value: Any, grad: float = 1.0) -> None:
    """Run no node."""


# Modules with a usual mistake


class _InSteps(Module):
    """Calls the module in four steps, which a mistaken module puts together in its own way."""

    def call_pre_hooks(self, x: Any) -> Any:
        """Run the forward pre-hooks."""
        (x,) = through(self.forward_pre_hooks, (x,), lambda hook, args: hook(self, args))
        return x

    def enter(self, x: Any) -> Any:
        """Make the node at the entrance."""
        x = Value(x.data, pass_on, (x,))
        x.grad_fn.register_hook(self.at_the_entrance)
        return x

    def call_forward_hooks(self, x: Any, output: Any) -> Any:
        """Run the forward hooks."""
        return through(self.forward_hooks, output, lambda hook, output: hook(self, (x,), output))

    def leave(self, output: Any) -> Any:
        """Make the node at the exit."""
        output = Value(output.data, pass_on, (output,))
        output.grad_fn.register_hook(self.at_the_exit)
        return output


class LosesForwardPreHooks(_InSteps):
    def __call__(self, x: Any) -> Any:
        """Run the forward pre-hooks, and go on with the old input."""
        self.call_pre_hooks(x)
        x = self.enter(x)
        return self.leave(self.call_forward_hooks(x, self.forward(x)))


class LosesForwardHooks(_InSteps):
    def __call__(self, x: Any) -> Any:
        """Run the forward hooks, and return what ``forward`` returned."""
        x = self.enter(self.call_pre_hooks(x))
        output = self.forward(x)
        self.call_forward_hooks(x, output)
        return self.leave(output)


class EntersEarly(_InSteps):
    def __call__(self, x: Any) -> Any:
        """Make the node at the entrance before the forward pre-hooks."""
        x = self.call_pre_hooks(self.enter(x))
        return self.leave(self.call_forward_hooks(x, self.forward(x)))


class ExitsEarly(_InSteps):
    def __call__(self, x: Any) -> Any:
        """Make the node at the exit before the forward hooks."""
        x = self.enter(self.call_pre_hooks(x))
        return self.call_forward_hooks(x, self.leave(self.forward(x)))


class HasNoEntrance(_InSteps):
    def __call__(self, x: Any) -> Any:
        """Register ``at_the_entrance`` on the node that ``x`` has already."""
        x = self.call_pre_hooks(x)
        x.grad_fn.register_hook(self.at_the_entrance)
        return self.leave(self.call_forward_hooks(x, self.forward(x)))
