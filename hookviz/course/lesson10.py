"""Judges the answers to the exercises of lesson 10."""

import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.course import engine, mistaken_engines
from hookviz.course.hooked_module import judge_module
from hookviz.course.judges import (
    EndlessLoopError,
    Feedback,
    Grad,
    Judge,
    as_float,
    call_safely,
    check_callable,
    judge_number,
    limit_lines,
    make_leaf,
)
from hookviz.course.random_graphs import GRAPHS, SmallEngine, find_disagreement, recognise, run_engine

# The two functions for hooks


def _judge_register(answer: Any) -> Feedback:
    """Register two hooks in a dict with the learner's function, and take the first one off."""
    if fault := check_callable(answer):
        return fault
    hooks: engine.Hooks = OrderedDict()
    handles = []
    for hook in (print, repr):
        handle, error = call_safely(answer, hooks, hook)
        if error:
            return Feedback("fails", error)
        handles.append(handle)
    if not hooks:
        return Feedback("not_kept")
    if not all(isinstance(handle, RemovableHandle) for handle in handles):
        return Feedback("no_handle")
    if len(hooks) == 1:
        return Feedback("overwrites")
    others: list[Any] = [kept for kept in hooks.values() if kept not in (print, repr)]
    if others:
        return Feedback("not_itself", type(others[0]).__name__)
    if list(hooks.values()) != [print, repr]:
        return Feedback("other")
    handles[0].remove()
    return Feedback("right" if list(hooks.values()) == [repr] else "not_removed")


def _run_through(function: Callable[..., Any], seed: int) -> Any:
    """Send a number through random hooks with ``function``; return the log of calls and the result, or the error."""
    choose, log = random.Random(seed), []
    hooks: engine.Hooks = OrderedDict()

    def add(number: int, does: str, factor: float) -> None:
        def hook(value: float) -> Any:
            log.append((number, _plain(value)))
            if does == "off":
                hooks.pop(number, None)
            return {"scale": value * factor, "zero": 0.0}.get(does)

        hooks[number] = hook

    for number in range(choose.randint(1, 4)):
        add(number, choose.choice(["look", "look", "scale", "scale", "zero", "off"]), choose.choice([2.0, -1.0, 0.5]))
    own_call = (lambda hook, value: hook(value + 1),) if choose.random() < 0.4 else ()
    result, error = call_safely(function, hooks, choose.uniform(1, 2), *own_call)
    return error if error else [*log, ("result", _plain(result))]


def _plain(value: Any) -> Any:
    """A value that can be compared."""
    return value if isinstance(value, (int, float)) else type(value).__name__


def _drops(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        call(hook, value)
    return value


def _lets_none_in(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        value = call(hook, value)
    return value


def _takes_zero_for_none(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        value = call(hook, value) or value
    return value


def _gives_the_first_value(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    result = value
    for hook in list(hooks.values()):
        returned = call(hook, value)
        result = result if returned is None else returned
    return result


def _stops(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        returned = call(hook, value)
        if returned is not None:
            return returned
    return value


def _ignores_call(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    return engine.through(hooks, value)


def _calls_nothing(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    return value


def _goes_backwards(hooks: engine.Hooks, value: Any, call: Callable[..., Any] = engine.call_hook) -> Any:
    return engine.through(OrderedDict(reversed(hooks.items())), value, call)


_THROUGH_MISTAKES = {
    "calls_nothing": _calls_nothing,
    "drops": _drops,
    "none_in": _lets_none_in,
    "zero": _takes_zero_for_none,
    "first_value": _gives_the_first_value,
    "stops": _stops,
    "ignores_call": _ignores_call,
    "backwards": _goes_backwards,
}


def _judge_through(answer: Any) -> Feedback:
    if fault := check_callable(answer):
        return fault
    logs = [_run_through(answer, seed) for seed in range(GRAPHS)]
    if logs == [_run_through(engine.through, seed) for seed in range(GRAPHS)]:
        return Feedback("right")
    if name := recognise(_run_through, answer, _THROUGH_MISTAKES):
        return Feedback(name)
    errors = [log for log in logs if isinstance(log, str)]
    if any("mutated" in error or "changed size" in error for error in errors):
        return Feedback("mutated")
    return Feedback("fails", errors[0]) if errors else _explain_through(answer)


def _explain_through(answer: Any) -> Feedback:
    """Send 3 through two hooks, one that doubles and one that returns nothing: say what comes out."""
    called: list[str] = []

    def doubles(value: float) -> float:
        called.append("doubles")
        return value * 2

    def looks(value: float) -> None:
        called.append("looks")

    for name, functions in (("look_last", (doubles, looks)), ("look_first", (looks, doubles))):
        called.clear()
        result, _ = call_safely(answer, OrderedDict(enumerate(functions)), 3.0)
        again = [hook for hook in set(called) if called.count(hook) > 1]
        if again:
            return Feedback("again")
        if result != 6:
            return Feedback(name if isinstance(result, float) else "no_number", str(result))
    return Feedback("other")


# Parts of the engine, each in the place of the right one


_LINES = 100_000
"""The most lines that a learner's backward may run on one graph; the graphs have 16 nodes at most."""


def _judge_part(part: str, usual: Mapping[str, Any], explain: Callable[[Any], Feedback | None]) -> Judge:
    """Make a judge of one part of the engine: it is compared with torch on random graphs.

    ``usual`` maps usual mistakes to parts that make them: a mistake is recognised by what it leaves in the log.
    ``explain`` tries out a part with any other mistake, and says what it sees.
    """

    def judge(answer: Any) -> Feedback:
        if fault := check_callable(answer):
            return fault
        small = SmallEngine(**{part: limit_lines(answer, _LINES) if part == "backward" else answer})
        log = find_disagreement(small)
        if log is None:
            return Feedback("right")
        if isinstance(log, str) and log.startswith(EndlessLoopError.__name__):
            return Feedback("endless", f"{_LINES:,}")
        mistakes = {name: SmallEngine(**{part: mistaken}) for name, mistaken in usual.items()}
        if name := recognise(run_engine, small, mistakes):
            return Feedback(name)
        seen: Feedback | None = call_safely(explain, answer)[0]  # a part may be anything
        if seen:
            return seen
        return Feedback("fails", log) if isinstance(log, str) else Feedback("other")

    return judge


_DICTS = ("tensor_hooks", "retain_hooks", "pre_hooks", "post_hooks")


def _run_node(node_class: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Run a node with two hooks in each dict; return which of them ran with what, and what the node sends."""
    log: list[tuple[str, Any]] = []
    node = node_class(lambda grad: (grad * 3, grad * 5), [engine.Value(1.0).grad_fn, engine.Value(1.0).grad_fn])

    def add(name: str, scale: float) -> None:
        def hook(*given: Any) -> Any:
            log.append((name, given if len(given) > 1 else given[0]))
            if name == "retain_hooks":
                return None
            return tuple(part * scale for part in given[0]) if isinstance(given[0], tuple) else given[0] * scale

        engine.register(getattr(node, name), hook)

    for name in _DICTS:
        add(name, 2.0)
        add(name, 10.0)
    return log, node.run(1.0)


def _explain_node(answer: Any) -> Feedback | None:
    """Say which hook of a single node is not called, is called again or is given something else."""
    seen, error = call_safely(_run_node, answer)
    if error:
        return None
    (log, sent), (expected, wanted) = seen, _run_node(engine.Node)
    counts = {name: sum(entry[0] == name for entry in log) for name in _DICTS}
    missing = [name for name in _DICTS if not counts[name]]
    if missing:
        return Feedback("not_called", ", ".join(missing))
    if again := [name for name in _DICTS if counts[name] > 2]:
        return Feedback("again", again[0])
    if [name for name, _ in log] != [name for name, _ in expected]:
        return Feedback("order")
    if different := [entry for entry, right in zip(log, expected, strict=True) if entry != right]:
        name, given = different[0]
        return Feedback("given_after" if name == "post_hooks" else "given", name, str(given))
    return None if sent == wanted else Feedback("sent", str(sent))


def _explain_value(answer: Any) -> Feedback | None:
    """Say what two calls of ``accumulate`` leave in ``.grad``, if that is wrong."""
    value, error = call_safely(answer, 2.0)
    if error:
        return None
    for number, wanted in ((1.0, 1.0), (10.0, 11.0)):
        sent, error = call_safely(value.accumulate, number)
        if error:
            return None
        if value.grad != wanted:
            return Feedback("once" if number == 1 else "twice", str(value.grad))
        if sent != ():
            return Feedback("sends", str(sent))
    return None


def _run_and_log(backward: Any, seed: int) -> list[tuple[int, float]]:
    """Run a pass through a random graph of the lesson's values; return which value got which gradient, in order."""
    choose, log = random.Random(seed), []
    values = [engine.Value(choose.uniform(0.5, 1)) for _ in range(3)]
    for _ in range(9):
        one, other = choose.choices(values, k=2)
        values.append(choose.choice([one + other, one * other]))
    for number, value in enumerate(values):
        value.register_hook(lambda grad, number=number: log.append((number, grad)))
    backward(values[-1])
    return log


def _explain_backward(answer: Any) -> Feedback | None:
    """Say what is wrong on the first random graph on which the nodes do not run as they should."""
    limited = limit_lines(answer, _LINES)
    for seed in range(100):
        log, error = call_safely(_run_and_log, limited, seed)
        expected = _run_and_log(engine.backward, seed)
        if error:
            return None
        if log == expected:
            continue
        numbers = [number for number, _ in log]
        if not numbers:
            return Feedback("no_hooks")
        if len(set(numbers)) < len(numbers):
            return Feedback("again")
        if set(numbers) != {number for number, _ in expected}:
            return Feedback("not_run")
        return Feedback("order" if sorted(log) == sorted(expected) else "gradient")
    return None


_NODE_MISTAKES = {
    "no_hooks": mistaken_engines.HasNoHooks,
    "no_pre_hooks": mistaken_engines.HasNoPreHooks,
    "no_post_hooks": mistaken_engines.HasNoPostHooks,
    "retains_first": mistaken_engines.RetainsFirst,
    "retains_last": mistaken_engines.RetainsLast,
    "pre_first": mistaken_engines.PreHooksFirst,
    "pre_lost": mistaken_engines.LosesPreHooks,
    "post_lost": mistaken_engines.LosesPostHooks,
    "pre_no_tuple": mistaken_engines.GivesPreHooksNoTuple,
    "post_one": mistaken_engines.CallsPostHooksWithOne,
    "post_old": mistaken_engines.GivesOldGradient,
    "not_unpacked": mistaken_engines.DoesNotUnpack,
    "no_tuple": mistaken_engines.GivesNoTuple,
    "exchanged": mistaken_engines.ExchangesTuples,
    "after": mistaken_engines.HooksAfterNode,
}
_VALUE_MISTAKES = {
    "nothing_kept": mistaken_engines.KeepsNothing,
    "overwrites": mistaken_engines.Overwrites,
    "first": mistaken_engines.KeepsFirst,
}
_BACKWARD_MISTAKES = {
    "runs_nothing": mistaken_engines.does_nothing,
    "stops": mistaken_engines.stops_early,
    "recursion": mistaken_engines.recurses,
    "no_wait": mistaken_engines.does_not_wait,
    "each_part": mistaken_engines.queues_each_part,
    "first_part": mistaken_engines.waits_for_one,
    "forgets": mistaken_engines.forgets_what_arrived,
    "newest": mistaken_engines.takes_newest,
    "oldest": mistaken_engines.takes_oldest,
}


def _judge_backward(answer: Any) -> Feedback:
    """Compare the learner's backward with torch, and then look into its buffer during a pass."""
    feedback = _judge_part("backward", _BACKWARD_MISTAKES, _explain_backward)(answer)
    return _judge_buffer(answer) if feedback.name == "right" else feedback


def _judge_buffer(answer: Any) -> Feedback:
    """Each node takes its gradient out of the buffer before it runs, and the pass leaves nothing there."""
    x, w = engine.Value(2.0), engine.Value(3.0)
    y = x * x
    z = y * w
    buffer: dict[Any, float] = {}
    during: list[tuple[Any, list[Any]]] = []

    def look(node: Any) -> Callable[[float], None]:
        return lambda grad: during.append((node, list(buffer)))

    for value in (x, w, y, z):
        value.register_hook(look(value.grad_fn))
    _, error = call_safely(limit_lines(answer, _LINES), z, 1.0, buffer)
    if error:
        return Feedback("fails", error)
    if not any(y.grad_fn in waiting for _, waiting in during):  # it waits while w, a leaf, runs
        return Feedback("own_buffer")
    if buffer:
        return Feedback("left")
    return Feedback("late" if any(node in waiting for node, waiting in during) else "right")


# Numbers


def _count_visits() -> float:
    """How often a recursion along the arrows visits the leaf, from the tenth doubling on."""
    y = make_leaf(1.0)
    for _ in range(10):
        y = y + y

    def count(node: Any) -> int:
        targets = [target for target, _ in node.next_functions]
        return sum(map(count, targets)) if targets else 1

    return float(count(y.grad_fn))


def _retained_gradient() -> float:
    """The retained gradient of a tensor that receives 4, with hooks of three kinds registered in the wrong order."""
    c = make_leaf(2.0) * 3
    node: Any = c.grad_fn
    node.register_hook(lambda sent, grads: tuple(None if grad is None else 0 * grad for grad in sent))
    node.register_prehook(lambda grads: (10 * grads[0],))
    c.retain_grad()
    c.register_hook(lambda grad: 2 * grad)  # type: ignore[no-untyped-call]
    torch.autograd.backward(c, torch.tensor(4.0))
    assert c.grad is not None
    return c.grad.item()


def _judge_division(answer: Any) -> Feedback:
    """Compare the gradients of the learner's function with those of PyTorch."""
    if fault := check_callable(answer):
        return fault
    feedback = Feedback("right")
    for grad, x, y in ((3.0, 5.0, 2.0), (-2.0, 7.0, 4.0)):
        result, error = call_safely(answer, grad, x, y)
        if error:
            return Feedback("fails", error)
        if result is None:
            return Feedback("no_return")
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            return Feedback("pair")
        feedback = _compare_with_division([as_float(value) for value in result], grad, make_leaf(x), make_leaf(y))
        if feedback.name != "right":
            return feedback
    return feedback


def _compare_with_division(sent: list[float | None], grad: float, x: Grad, y: Grad) -> Feedback:
    right = [value.item() for value in torch.autograd.grad(x / y, (x, y), torch.tensor(grad))]
    slips = {
        "right": right,
        "sign": [right[0], -right[1]],
        "exchanged": right[::-1],
        "no_grad": [value / grad for value in right],
        "no_grad_for_x": [right[0] / grad, right[1]],
        "no_grad_for_y": [right[0], right[1] / grad],
        "product": [grad * y.item(), grad * x.item()],
        "no_square": [right[0], right[1] * y.item()],
    }
    if name := next((name for name, slip in slips.items() if _are_close(sent, slip)), None):
        return Feedback(name)
    for name, given, wanted in zip(("for_y", "for_x"), sent, right, strict=True):
        if _are_close([given], [wanted]):
            return Feedback(name)
    return Feedback("other")


def _are_close(sent: list[float | None], right: list[float]) -> bool:
    return all(value is not None and abs(value - wanted) < 1e-4 for value, wanted in zip(sent, right, strict=True))


JUDGES: dict[str, Judge] = {
    "10.1": _judge_register,
    "10.2": _judge_through,
    "10.3": _judge_part("node", _NODE_MISTAKES, _explain_node),
    "10.4": _judge_part("value", _VALUE_MISTAKES, _explain_value),
    "10.5": judge_number(
        _count_visits,
        {
            1: "queue",
            2: "diamond",
            10: "sums",
            11: "once_each",
            20: "arrows",
            512: "one_less",
            1023: "all_sums",
            2046: "nodes",
            2047: "nodes",
            2048: "one_more",
        },
    ),
    "10.6": _judge_backward,
    "10.7": judge_module,
    "10.8": _judge_division,
    "10.9": judge_number(_retained_gradient, {4: "arrived", 80: "all", 40: "pre", 0: "post", 16: "doubled", 2: "seed"}),
}
