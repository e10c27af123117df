"""Judges the answers to the exercises of lesson 10."""

import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.course import engine
from hookviz.course.judges import (
    EndlessLoopError,
    Feedback,
    Grad,
    Judge,
    as_float,
    call_answer,
    call_safely,
    check_callable,
    judge_number,
    limit_lines,
    make_leaf,
)
from hookviz.course.random_graphs import (
    GRAPHS,
    KINDS,
    Failure,
    SmallEngine,
    find_disagreement,
    recognise,
    run_module_program,
)

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
            return Feedback("raised", error)
        handles.append(handle)
    if not hooks:
        return Feedback("not_kept")
    if not all(isinstance(handle, RemovableHandle) for handle in handles):
        return Feedback("no_handle")
    if len(hooks) == 1:
        return Feedback("overwrites")
    if list(hooks.values()) != [print, repr]:
        return Feedback("other")
    handles[0].remove()
    return Feedback("right" if list(hooks.values()) == [repr] else "not_removed")


Through = Callable[..., Any]


def _run_through(function: Through, seed: int) -> Any:
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


def _drops(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        call(hook, value)
    return value


def _lets_none_in(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        value = call(hook, value)
    return value


def _takes_zero_for_none(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        value = call(hook, value) or value
    return value


def _gives_the_first_value(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    result = value
    for hook in list(hooks.values()):
        returned = call(hook, value)
        result = result if returned is None else returned
    return result


def _stops(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    for hook in list(hooks.values()):
        returned = call(hook, value)
        if returned is not None:
            return returned
    return value


def _ignores_call(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    return engine.through(hooks, value)


def _calls_nothing(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
    return value


def _goes_backwards(hooks: engine.Hooks, value: Any, call: Through = engine.call_hook) -> Any:
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
    for name, mistaken in _THROUGH_MISTAKES.items():
        if logs == [_run_through(mistaken, seed) for seed in range(GRAPHS)]:
            return Feedback(name)
    errors = [log for log in logs if isinstance(log, str)]
    if any("mutated" in error or "changed size" in error for error in errors):
        return Feedback("mutated")
    return Feedback("fails", errors[0]) if errors else Feedback("other")


# Parts of the engine, each in the place of the right one


_LINES = 100_000
"""The most lines that a learner's backward may run on one graph; the graphs have 16 nodes at most."""


def _judge_part(part: str, usual: Mapping[str, Any]) -> Judge:
    """Make a judge of one part of the engine: it is compared with torch on random graphs.

    ``usual`` maps usual mistakes to parts that make them: a mistake is recognised by what it leaves in the log.
    """

    def judge(answer: Any) -> Feedback:
        if fault := check_callable(answer):
            return fault
        small = SmallEngine(**{part: limit_lines(answer, _LINES) if part == "backward" else answer})
        found = find_disagreement(small)
        if found is None:
            return Feedback("right")
        seed, log = found
        if isinstance(log, Failure) and log.kind == EndlessLoopError.__name__:
            return Feedback("endless", f"{_LINES:,}")
        if name := recognise(small, {name: SmallEngine(**{part: mistaken}) for name, mistaken in usual.items()}):
            return Feedback(name)
        return Feedback("fails", log.text) if isinstance(log, Failure) else Feedback("other", str(seed))

    return judge


_NODE_MISTAKES = {
    "no_hooks": engine.HasNoHooks,
    "no_pre_hooks": engine.HasNoPreHooks,
    "no_post_hooks": engine.HasNoPostHooks,
    "retains_first": engine.RetainsFirst,
    "retains_last": engine.RetainsLast,
    "pre_first": engine.PreHooksFirst,
    "pre_lost": engine.LosesPreHooks,
    "post_lost": engine.LosesPostHooks,
    "pre_no_tuple": engine.GivesPreHooksNoTuple,
    "post_one": engine.CallsPostHooksWithOne,
    "post_old": engine.GivesOldGradient,
    "not_unpacked": engine.DoesNotUnpack,
    "no_tuple": engine.GivesNoTuple,
    "exchanged": engine.ExchangesTuples,
    "after": engine.HooksAfterNode,
}
_VALUE_MISTAKES = {
    "nothing_kept": engine.KeepsNothing,
    "overwrites": engine.Overwrites,
    "first": engine.KeepsFirst,
}
_BACKWARD_MISTAKES = {
    "runs_nothing": engine.does_nothing,
    "stops": engine.stops_early,
    "recursion": engine.recurses,
    "no_wait": engine.does_not_wait,
    "each_part": engine.queues_each_part,
    "first_part": engine.waits_for_one,
    "forgets": engine.forgets_what_arrived,
    "newest": engine.takes_newest,
    "oldest": engine.takes_oldest,
}


def _judge_backward(answer: Any) -> Feedback:
    """Compare the learner's backward with torch, and then look into its buffer during a pass."""
    feedback = _judge_part("backward", _BACKWARD_MISTAKES)(answer)
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


def _judge_module(answer: Any) -> Feedback:
    """Compare the learner's module with torch's, on chains with random hooks of four kinds."""
    if fault := check_callable(answer):
        return fault
    for seed in range(GRAPHS):
        log, error = call_safely(run_module_program, seed, answer)
        if error:
            if "at_the_exit() missing" in error:
                return Feedback("pre_hook")
            return Feedback("entrance") if "at_the_entrance() missing" in error else Feedback("fails", error)
        expected = run_module_program(seed)
        if log != expected:
            return _explain_module(log, expected)
    return Feedback("right")


def _explain_module(log: list[Any], expected: list[Any]) -> Feedback:
    missing = [kind for kind in KINDS if _count(log, kind) < _count(expected, kind)]
    if missing:
        return Feedback("missing", missing[0])
    if [entry[:2] for entry in log[:-1]] != [entry[:2] for entry in expected[:-1]]:
        return Feedback("order")
    different = next(entry for entry, wanted in zip(log, expected, strict=False) if entry != wanted)
    return Feedback("result" if different[0] == "numbers" else "given", different[0])


def _count(log: list[Any], kind: str) -> int:
    return sum(entry[0] == kind for entry in log)


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
    feedback = Feedback("right")
    for grad, x, y in ((3.0, 5.0, 2.0), (-2.0, 7.0, 4.0)):
        result, fault = call_answer(answer, grad, x, y)
        if fault is not None:
            return fault
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
        "product": [grad * y.item(), grad * x.item()],
        "no_square": [right[0], right[1] * y.item()],
    }
    return Feedback(next((name for name, slip in slips.items() if _are_close(sent, slip)), "other"))


def _are_close(sent: list[float | None], right: list[float]) -> bool:
    return all(value is not None and abs(value - wanted) < 1e-4 for value, wanted in zip(sent, right, strict=True))


JUDGES: dict[str, Judge] = {
    "10.1": _judge_register,
    "10.2": _judge_through,
    "10.3": _judge_part("node", _NODE_MISTAKES),
    "10.4": _judge_part("value", _VALUE_MISTAKES),
    "10.5": judge_number(
        _count_visits, {1: "queue", 2: "diamond", 10: "sums", 20: "arrows", 512: "one_less", 2046: "nodes"}
    ),
    "10.6": _judge_backward,
    "10.7": _judge_module,
    "10.8": _judge_division,
    "10.9": judge_number(_retained_gradient, {4: "arrived", 80: "all", 40: "pre", 0: "post"}),
}
