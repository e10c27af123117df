"""Right and wrong answers to what lesson 10 asks: most mistakes are the engine with other text in one place."""

import inspect
from functools import partial
from typing import Any

from hookviz.course import engine, lesson10, mistaken_engines
from tests.course.answers import common
from tests.course.answers.common import raises

changed = partial(common.changed, inspect.getsource(engine))


def lets_the_last_decide(hooks: Any, value: Any, call: Any = engine.call_hook) -> Any:
    returned = None
    for hook in list(hooks.values()):
        returned = call(hook, value)
    return value if returned is None else returned


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


KEEP = "hooks[handle.id] = hook"
TENSOR_HOOKS = "grad = through(self.tensor_hooks, grad)"
PRE_HOOKS = "(grad,) = through(self.pre_hooks, (grad,))"
SEND = "return self.send_through_post_hooks(grad)"
ADD = "self.grad = grad if self.grad is None else self.grad + grad"
RUN = "sent = node.run(buffer.pop(node))"
ENTER, ENTRANCE = "x = Value(x.data, pass_on, (x,))", "x.grad_fn.register_hook(self.at_the_entrance)"
LEAVE, EXIT = "output = Value(output.data, pass_on, (output,))", "output.grad_fn.register_hook(self.at_the_exit)"
CALL_PRE_HOOKS = "(x,) = through(self.forward_pre_hooks, (x,), call_pre_hook)"

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
        changed("register", (KEEP, "pass")),
        changed("register", (f"{KEEP}\n    return handle", KEEP)),
        changed("register", (KEEP, "hooks[0] = hook")),
        changed("register", (KEEP, "hooks[-len(hooks)] = hook")),
        changed("register", (KEEP, "hooks[handle.id] = lambda *given: hook(*given)")),
        changed("register", (KEEP, "hooks[handle.id] = (hook,)")),
        changed("register", (KEEP, f"{KEEP}\n    hooks.move_to_end(handle.id, last=False)")),
        raises,
    ],
    "10.2": [
        *lesson10._THROUGH_MISTAKES.values(),
        changed("through", ("list(hooks.values())", "hooks.values()")),
        changed(
            "through", ("if returned is not None:", "if returned is None:\n            return value\n        else:")
        ),
        lets_the_last_decide,
        changed("through", ("value = returned", "value = call(hook, value)")),
        changed("through", ("value = returned\n    return value", "value = returned")),
        changed("through", ("list(hooks.values())", "list(hooks.values()) if len(hooks) < 3 else []")),
        raises,
    ],
    "10.3": [
        changed("Node", (TENSOR_HOOKS, PRE_HOOKS), (f"{PRE_HOOKS}\n        {SEND}", f"{TENSOR_HOOKS}\n        {SEND}")),
        changed("Node", (TENSOR_HOOKS, "grad = through(self.tensor_hooks, grad if grad == 1 else 2 * grad)")),
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
        changed("Node", (SEND, f"{SEND} and tuple(0.0 for _ in self.next_nodes)")),
        changed("Node", (TENSOR_HOOKS, "pass")),
        changed("Node", (TENSOR_HOOKS, f"through(self.tensor_hooks, grad)\n        {TENSOR_HOOKS}")),
        changed("Node", (TENSOR_HOOKS, "through(self.tensor_hooks, grad)")),
        changed(
            "Node",
            ("return hook(sent, (grad,))", "return hook(first, (grad,))"),
            (
                "return through(self.post_hooks, self.send(grad),",
                "first = self.send(grad)\n        return through(self.post_hooks, first,",
            ),
        ),
        raises,
    ],
    "10.4": [
        changed("Value", (ADD, f"grad = grad if self.data == 2 else 2 * grad\n        {ADD}")),
        mistaken_engines.KeepsNothing,
        mistaken_engines.Overwrites,
        mistaken_engines.KeepsFirst,
        changed("Value", (ADD, f"grad = 2 * grad\n        {ADD}")),
        changed("Value", ("self.grad + grad", "self.grad + 2 * grad")),
        changed("Value", (f"{ADD}\n        return ()", ADD)),
        raises,
    ],
    "10.5": [1, 2, 10, 11, 20, 512, 1023, 2047, 2048, 5],
    "10.6": [
        changed("backward", (RUN, f"node.post_hooks.clear()\n        {RUN}")),
        mistaken_engines.does_nothing,
        mistaken_engines.stops_early,
        mistaken_engines.recurses,
        mistaken_engines.does_not_wait,
        mistaken_engines.waits_for_one,
        mistaken_engines.queues_each_part,
        mistaken_engines.forgets_what_arrived,
        mistaken_engines.takes_newest,
        mistaken_engines.takes_oldest,
        changed("backward", (RUN, "sent = node.run(buffer[node])")),
        changed("backward", (RUN, "sent = node.run(buffer[node])\n        del buffer[node]")),
        changed("backward", ("if buffer is None:", "if True:")),
        changed("backward", ("buffer[value.grad_fn] = grad", "buffer[value.grad_fn] = grad / 2")),
        changed("backward", (RUN, f"node.run(buffer[node])\n        {RUN}")),
        changed("backward", (RUN, "sent = node.send(buffer.pop(node))")),
        changed("backward", ("arrows[target] == 0", "arrows[target] == 1")),
        changed("backward", ("heappush(ready, target)", "ready.append(target)")),
        never_ends,
        raises,
    ],
    "10.7": [
        changed("Module", (CALL_PRE_HOOKS, "pass")),
        changed("Module", (ENTER, "pass"), (ENTRANCE, "pass"), (LEAVE, "pass"), (EXIT, "pass")),
        mistaken_engines.LosesForwardPreHooks,
        mistaken_engines.LosesForwardHooks,
        mistaken_engines.EntersEarly,
        mistaken_engines.ExitsEarly,
        mistaken_engines.HasNoEntrance,
        changed("Module", ("return hook(self, (x,), output)", "return hook(self, x, output)")),
        changed("Module", (ENTRANCE, "pass")),
        changed("Module", (ENTER, "x = Value(x.data)")),
        changed(
            "Module",
            (ENTRANCE, "x.grad_fn.register_hook(self.at_the_exit)"),
            (EXIT, "output.grad_fn.register_hook(self.at_the_entrance)"),
        ),
        changed("Module", (ENTRANCE, "x.grad_fn.register_hook(self.at_the_entrance((1.0,), (1.0,)))")),
        changed("Module", (EXIT, "output.grad_fn.register_prehook(self.at_the_exit)")),
        changed("Module", (ENTRANCE, "x.grad_fn.register_prehook(self.at_the_entrance)")),
        changed(
            "Module",
            (CALL_PRE_HOOKS, f"old = x\n        {CALL_PRE_HOOKS}"),
            ("return hook(self, (x,), output)", "return hook(self, (old,), output)"),
        ),
        changed("Module", (LEAVE, "output = Value(output.data + 1, pass_on, (output,))")),
        changed(
            "Module",
            ("through(self.forward_pre_hooks,", "through(OrderedDict(reversed(self.forward_pre_hooks.items())),"),
            ("through(self.forward_hooks,", "through(OrderedDict(reversed(self.forward_hooks.items())),"),
        ),
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
