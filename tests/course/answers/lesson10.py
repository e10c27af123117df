"""Right and wrong answers to what lesson 10 asks."""

from collections import OrderedDict
from heapq import heappop, heappush
from typing import Any

from torch.utils.hooks import RemovableHandle

from hookviz.course import engine, lesson10, mistaken_engines
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


def keeps_a_tuple(hooks: Any, hook: Any) -> Any:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = (hook,)
    return handle


def puts_the_newest_first(hooks: Any, hook: Any) -> Any:
    handle = engine.register(hooks, hook)
    hooks.move_to_end(handle.id, last=False)
    return handle


def stops_at_none(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        returned = call(hook, value)
        if returned is None:
            return value
        value = returned
    return value


def lets_the_last_decide(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    returned = None
    for hook in list(hooks.values()):
        returned = call(hook, value)
    return value if returned is None else returned


def calls_twice(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        if call(hook, value) is not None:
            value = call(hook, value)
    return value


def returns_nothing(hooks: Any, value: Any, call: Any = engine.call_hook) -> None:
    engine.through(hooks, value, call)


def keeps_half_of_it(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    return engine.through(hooks, value, call) if len(hooks) < 3 else value


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


class RunsNoTensorHooks(engine.Node):
    def run(self, grad: Any) -> Any:
        self.tensor_hooks.clear()
        return super().run(grad)


class RunsTensorHooksTwice(engine.Node):
    def run(self, grad: Any) -> Any:
        engine.through(self.tensor_hooks, grad)
        return super().run(grad)


class ForgetsTensorHooks(engine.Node):
    """What the hooks of the tensor return gets lost."""

    def run(self, grad: Any) -> Any:
        engine.through(self.tensor_hooks, grad)
        grad = engine.through(self.retain_hooks, grad)
        (grad,) = engine.through(self.pre_hooks, (grad,))
        return self.send_through_post_hooks(grad)


class GivesEachPostHookTheSame(engine.Node):
    def send_through_post_hooks(self, grad: Any) -> Any:
        first = self.send(grad)
        return engine.through(self.post_hooks, first, lambda hook, sent: hook(first, (grad,)))


class RunsBackToFront(engine.Node):
    """Its hooks run once each, those of the tensor last."""

    def run(self, grad: Any) -> Any:
        (grad,) = engine.through(self.pre_hooks, (grad,))
        grad = engine.through(self.retain_hooks, grad)
        grad = engine.through(self.tensor_hooks, grad)
        return self.send_through_post_hooks(grad)


class KnowsOnlyOne(engine.Node):
    """It is right as long as the gradient is 1."""

    def run(self, grad: Any) -> Any:
        return super().run(grad if grad == 1 else 2 * grad)


class KnowsOnlyTwo(engine.Value):
    """It is right as long as its number is 2."""

    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        return super().accumulate(grad if self.data == 2 else 2 * grad)


class AddsTwice(engine.Value):
    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        self.grad = grad if self.grad is None else self.grad + 2 * grad
        return ()


class SendsNone(engine.Value):
    def accumulate(self, grad: Any) -> Any:
        super().accumulate(grad)


class Doubles(engine.Value):
    def accumulate(self, grad: Any) -> tuple[Any, ...]:
        return super().accumulate(2 * grad)


def runs_with_half(value: Any, grad: float = 1.0) -> None:
    engine.backward(value, grad / 2)


def run_queue(arrives: Any = None, take: Any = heappop, add: Any = heappush, run: Any = engine.Node.run) -> Any:
    """A loop like that of the engine, one of whose lines may be another."""

    def backward(value: Any, grad: float = 1.0, buffer: Any = None) -> None:
        buffer = {} if buffer is None else buffer
        arrows = engine.count_arrows(value.grad_fn)
        buffer[value.grad_fn] = grad
        ready = [value.grad_fn]
        while ready:
            node = take(ready)
            for target, part in zip(node.next_nodes, run(node, buffer.pop(node)), strict=True):
                buffer[target] = buffer.get(target, 0.0) + part
                arrows[target] -= 1
                if arrows[target] == 0 if arrives is None else arrives(arrows[target]):
                    add(ready, target)

    return backward


def runs_twice(node: Any, grad: Any) -> Any:
    node.run(grad)
    return node.run(grad)


def skips_post_hooks(value: Any, grad: float = 1.0, buffer: Any = None) -> None:
    waiting = [value.grad_fn]
    for node in waiting:
        node.post_hooks.clear()
        waiting.extend(node.next_nodes)
    engine.backward(value, grad, buffer)


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


def module_in_steps(call_forward: Any = None, entrance: Any = None, leave: Any = None) -> Any:
    """A module, one of whose steps may be another."""

    class InSteps(mistaken_engines.LosesForwardHooks):
        def __call__(self, x: Any) -> Any:
            x = (entrance or InSteps.enter)(self, self.call_pre_hooks(x))
            output = (call_forward or InSteps.call_forward_hooks)(self, x, self.forward(x))
            return (leave or InSteps.leave)(self, output)

    return InSteps


def gives_no_tuple(module: Any, x: Any, output: Any) -> Any:
    return engine.through(module.forward_hooks, output, lambda hook, output: hook(module, x, output))


def enters_with(hook: str, inputs: bool = True) -> Any:
    def enter(module: Any, x: Any) -> Any:
        x = engine.Value(x.data, engine.pass_on, (x,)) if inputs else engine.Value(x.data)
        if hook:
            x.grad_fn.register_hook(getattr(module, hook))
        return x

    return enter


def calls_it_at_once(module: Any, x: Any) -> Any:
    x = engine.Value(x.data, engine.pass_on, (x,))
    x.grad_fn.register_hook(module.at_the_entrance((1.0,), (1.0,)))
    return x


def leaves_with_the_entrance(module: Any, output: Any) -> Any:
    output = engine.Value(output.data, engine.pass_on, (output,))
    output.grad_fn.register_hook(module.at_the_entrance)
    return output


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
    "10.1": [
        does_not_keep,
        has_no_handle,
        overwrites,
        has_its_own_number,
        wraps,
        keeps_a_tuple,
        puts_the_newest_first,
        raises,
    ],
    "10.2": [
        *lesson10._THROUGH_MISTAKES.values(),
        goes_through_the_dict_itself,
        stops_at_none,
        lets_the_last_decide,
        calls_twice,
        returns_nothing,
        keeps_half_of_it,
        raises,
    ],
    "10.3": [
        RunsBackToFront,
        KnowsOnlyOne,
        mistaken_engines.HasNoHooks,
        mistaken_engines.HasNoPreHooks,
        mistaken_engines.HasNoPostHooks,
        mistaken_engines.RetainsFirst,
        mistaken_engines.RetainsLast,
        mistaken_engines.PreHooksFirst,
        mistaken_engines.LosesPreHooks,
        mistaken_engines.LosesPostHooks,
        mistaken_engines.DoesNotUnpack,
        mistaken_engines.GivesPreHooksNoTuple,
        mistaken_engines.CallsPostHooksWithOne,
        mistaken_engines.GivesOldGradient,
        mistaken_engines.GivesNoTuple,
        mistaken_engines.ExchangesTuples,
        mistaken_engines.HooksAfterNode,
        SendsNothing,
        RunsNoTensorHooks,
        RunsTensorHooksTwice,
        ForgetsTensorHooks,
        GivesEachPostHookTheSame,
        raises,
    ],
    "10.4": [
        KnowsOnlyTwo,
        mistaken_engines.KeepsNothing,
        mistaken_engines.Overwrites,
        mistaken_engines.KeepsFirst,
        Doubles,
        AddsTwice,
        SendsNone,
        raises,
    ],
    "10.5": [1, 2, 10, 11, 20, 512, 1023, 2047, 2048, 5],
    "10.6": [
        skips_post_hooks,
        mistaken_engines.does_nothing,
        mistaken_engines.stops_early,
        mistaken_engines.recurses,
        mistaken_engines.does_not_wait,
        mistaken_engines.waits_for_one,
        mistaken_engines.queues_each_part,
        mistaken_engines.forgets_what_arrived,
        mistaken_engines.takes_newest,
        mistaken_engines.takes_oldest,
        mistaken_engines.keeps_what_it_took,
        mistaken_engines.empties_too_late,
        has_its_own_buffer,
        runs_with_half,
        run_queue(run=runs_twice),
        run_queue(run=lambda node, grad: node.send(grad)),
        run_queue(arrives=lambda arrows: arrows == 1),
        run_queue(add=lambda ready, node: ready.append(node)),
        never_ends,
        raises,
    ],
    "10.7": [
        without("forward_pre"),
        ForgetsNodes,
        mistaken_engines.LosesForwardPreHooks,
        mistaken_engines.LosesForwardHooks,
        mistaken_engines.EntersEarly,
        mistaken_engines.ExitsEarly,
        mistaken_engines.HasNoEntrance,
        module_in_steps(call_forward=gives_no_tuple),
        module_in_steps(entrance=enters_with("")),
        module_in_steps(entrance=enters_with("at_the_entrance", inputs=False)),
        module_in_steps(entrance=enters_with("at_the_exit"), leave=leaves_with_the_entrance),
        module_in_steps(entrance=calls_it_at_once),
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
        lambda grad, x, y: (1 / y, -grad * x / y**2),
        lambda grad, x, y: (grad / y, -x / y**2),
        lambda grad, x, y: (grad / y, -grad / y**2),
        lambda grad, x, y: (grad / y**2, -grad * x / y**2),
        lambda grad, x, y: (1.5, -3.75),
        lambda grad, x, y: print(grad / y, -grad * x / y**2),
        raises,
    ],
    "10.9": [4, 80, 40, 0, 16, 2, 5],
}
