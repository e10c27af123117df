"""Right and wrong answers to what lesson 10 asks."""

from collections import OrderedDict
from typing import Any

from torch.utils.hooks import RemovableHandle

from hookviz.course import engine, lesson10
from tests.course.answers.common import raises

# register and through


def does_not_keep(hooks: Any, hook: Any) -> Any:
    return RemovableHandle(hooks)


def has_no_handle(hooks: Any, hook: Any) -> None:
    engine.register(hooks, hook)


def overwrites(hooks: Any, hook: Any) -> Any:
    handle = RemovableHandle(hooks)
    hooks[0] = hook
    return handle


def has_its_own_number(hooks: Any, hook: Any) -> Any:
    handle = RemovableHandle(hooks)
    hooks[-len(hooks)] = hook
    return handle


def wraps(hooks: Any, hook: Any) -> Any:
    return engine.register(hooks, lambda *given: hook(*given))


def goes_through_the_dict_itself(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    for hook in hooks.values():
        returned = call(hook, value)
        if returned is not None:
            value = returned
    return value


def adds_one(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    return engine.through(hooks, value, call) + 1


# Parts of the engine


class SendsNothing(engine.Node):
    def run(self, grad: Any) -> Any:
        super().run(grad)
        return tuple(0.0 for _ in self.next_nodes)


class Doubles(engine.Value):
    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        return super().accumulate(2 * grad)


def runs_with_half(value: Any, grad: float = 1.0) -> None:
    engine.backward(value, grad / 2)


def has_its_own_buffer(value: Any, grad: float = 1.0, buffer: Any = None) -> None:
    engine.backward(value, grad)


def never_ends(value: Any, grad: float = 1.0) -> None:
    """Its loop does nothing."""
    ready = [value.grad_fn]
    while ready:
        ...


def never_takes_out(value: Any, grad: float = 1.0) -> None:
    """It runs the first node again and again."""
    ready = [value.grad_fn]
    while ready:
        ready[0].run(grad)


# Modules


def without(kind: str) -> Any:
    """A module that has no hooks of one kind."""

    class Forgets(engine.Module):
        def __call__(self, x: Any) -> Any:
            kept = getattr(self, f"{kind}_hooks")
            setattr(self, f"{kind}_hooks", OrderedDict())
            output = super().__call__(x)
            setattr(self, f"{kind}_hooks", kept)
            return output

    return Forgets


class ForgetsNodes(engine.Module):
    def __call__(self, x: Any) -> Any:
        (x,) = engine.through(self.forward_pre_hooks, (x,), lambda hook, args: hook(self, args))
        return engine.through(self.forward_hooks, self.forward(x), lambda hook, output: hook(self, (x,), output))


class RunsBeforeTheExit(engine.Module):
    """Its full backward pre-hooks run before the node at the exit."""

    def __call__(self, x: Any) -> Any:
        output = super().__call__(x)
        node = output.grad_fn
        node.post_hooks.clear()
        node.register_prehook(self.at_the_exit)
        return output


class RunsBeforeTheEntrance(engine.Module):
    """Its full backward hooks are registered as pre-hooks of the node at the entrance."""

    def __call__(self, x: Any) -> Any:
        (x,) = engine.through(self.forward_pre_hooks, (x,), lambda hook, args: hook(self, args))
        x = engine.Value(x.data, engine.pass_on, (x,))
        x.grad_fn.register_prehook(self.at_the_entrance)
        output = engine.through(self.forward_hooks, self.forward(x), lambda hook, output: hook(self, (x,), output))
        return engine.Value(output.data, engine.pass_on, (output,))


class GivesTheOldInput(engine.Module):
    def __call__(self, x: Any) -> Any:
        old, forward_hooks = x, self.forward_hooks
        self.forward_hooks = OrderedDict(
            (number, lambda module, args, output, hook=hook: hook(module, (old,), output))
            for number, hook in forward_hooks.items()
        )
        output = super().__call__(x)
        self.forward_hooks = forward_hooks
        return output


class AddsOne(engine.Module):
    def __call__(self, x: Any) -> Any:
        output = super().__call__(x)
        return engine.Value(output.data + 1, engine.pass_on, (output,))


class RunsTheLastFirst(engine.Module):
    """Its hooks run in the wrong order."""

    def __call__(self, x: Any) -> Any:
        for kind in ("forward_pre_hooks", "forward_hooks"):
            setattr(self, kind, OrderedDict(reversed(getattr(self, kind).items())))
        return super().__call__(x)


RIGHT: dict[str, Any] = {
    "10.1": engine.register,
    "10.2": engine.through,
    "10.3": engine.Node,
    "10.4": engine.Value,
    "10.5": 1024,
    "10.6": engine.backward,
    "10.7": engine.Module,
    "10.8": lambda grad, x, y: (grad / y, -grad * x / y**2),
    "10.9": 8,
}
WRONG: dict[str, list[Any]] = {
    "10.1": [does_not_keep, has_no_handle, overwrites, has_its_own_number, wraps, raises],
    "10.2": [*lesson10._THROUGH_MISTAKES.values(), goes_through_the_dict_itself, adds_one, raises],
    "10.3": [
        engine.HasNoHooks,
        engine.HasNoPreHooks,
        engine.HasNoPostHooks,
        engine.RetainsFirst,
        engine.RetainsLast,
        engine.PreHooksFirst,
        engine.LosesPreHooks,
        engine.LosesPostHooks,
        engine.DoesNotUnpack,
        engine.GivesPreHooksNoTuple,
        engine.CallsPostHooksWithOne,
        engine.GivesOldGradient,
        engine.GivesNoTuple,
        engine.ExchangesTuples,
        engine.HooksAfterNode,
        SendsNothing,
        raises,
    ],
    "10.4": [engine.KeepsNothing, engine.Overwrites, engine.KeepsFirst, Doubles, raises],
    "10.5": [1, 2, 10, 20, 512, 2046, 5],
    "10.6": [
        engine.does_nothing,
        engine.stops_early,
        engine.recurses,
        engine.does_not_wait,
        engine.waits_for_one,
        engine.queues_each_part,
        engine.forgets_what_arrived,
        engine.takes_newest,
        engine.takes_oldest,
        engine.keeps_what_it_took,
        engine.empties_too_late,
        has_its_own_buffer,
        runs_with_half,
        never_ends,
        raises,
    ],
    "10.7": [
        without("forward_pre"),
        ForgetsNodes,
        RunsBeforeTheExit,
        RunsBeforeTheEntrance,
        GivesTheOldInput,
        AddsOne,
        RunsTheLastFirst,
        raises,
    ],
    "10.8": [
        lambda grad, x, y: grad / y,
        lambda grad, x, y: (grad / y, grad * x / y**2),
        lambda grad, x, y: (-grad * x / y**2, grad / y),
        lambda grad, x, y: (1 / y, -x / y**2),
        lambda grad, x, y: (grad * y, grad * x),
        lambda grad, x, y: (grad / y, -grad * x / y),
        lambda grad, x, y: (1.5, -3.75),
        lambda grad, x, y: print(grad / y, -grad * x / y**2),
        raises,
    ],
    "10.9": [4, 80, 40, 0, 5],
}
