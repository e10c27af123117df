"""Judges the answers to the exercises of lesson 05."""

import copy
import inspect
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from hookviz.course.judges import Feedback, Judge, call_function, call_safely, check_tensor_hook, judge_number
from hookviz.course.sick_net import SickNet


def _make_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))


def _count_outputs_of_piled_hooks() -> float:
    """How many outputs a list has after three calls, each after the registration of another hook that appends."""
    outputs: list[Any] = []
    net = _make_net()
    for _ in range(3):
        net[0].register_forward_hook(lambda module, args, output: outputs.append(output))
        net(torch.ones(1))
    return float(len(outputs))


def _gradient_with_late_binding() -> float:
    """The gradient after three hooks that were made in a loop and read the loop variable when they run."""
    t = torch.tensor(1.0, requires_grad=True)
    for factor in (2, 3, 4):
        t.register_hook(lambda grad: grad * factor)  # type: ignore[no-untyped-call]  # noqa: B023
    torch.autograd.backward(t * 1)
    assert t.grad is not None
    return t.grad.item()


def _count_copied_hooks() -> float:
    """How many hooks the deep copy of a model has, with one on each of two layers and one on a weight."""
    net = _make_net()
    for layer in net:
        layer.register_forward_hook(lambda *given: None)
    parameter: Any = net[0].weight
    parameter.register_hook(lambda grad: None)
    twin: Any = copy.deepcopy(net)
    return float(sum(len(layer._forward_hooks) + len(layer.weight._backward_hooks or ()) for layer in twin))


def _count_outputs_in_the_sick_network() -> float:
    """How many outputs the sick network has stored after 20 calls; each run of a hook on its ReLU stores one."""
    net = SickNet()
    with torch.no_grad():
        for _ in range(20):
            net(torch.zeros(1, 1, 8, 8))
    return float(len(net.seen))


_CAUSES = "CADFEB"
"""The causes for which the hooks of six programs do not fire."""


def _judge_causes(answer: Any) -> Feedback:
    """Compare six letters with the causes; the feedback is about the first program with another letter."""
    text = "".join(map(str, answer)) if isinstance(answer, (list, tuple)) else answer
    letters = re.sub(r"[\s,;]", "", text).upper() if isinstance(text, str) else ""
    if not re.fullmatch(r"[A-F]{6}", letters):
        return Feedback("form")
    wrong = [n for n, (given, right) in enumerate(zip(letters, _CAUSES, strict=True), 1) if given != right]
    return Feedback(f"program_{wrong[0]}" if wrong else "right", str(len(_CAUSES) - len(wrong)))


def _judge_context_manager(answer: Any) -> Feedback:
    """Enter and leave the learner's context manager, once normally and once with an error."""
    net, calls = _make_net(), []
    others = [layer.register_forward_hook(lambda *given: None) for layer in net]

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        calls.append(module)

    for fails in (False, True):
        manager, fault = call_function(answer, net, hook)
        if fault:
            return fault
        if inspect.isgenerator(manager):
            return Feedback("generator")
        if not isinstance(manager, AbstractContextManager):
            return Feedback("no_manager")
        _, error = call_safely(_run_block, manager, net, fails)
        if error and not error.endswith(_ERROR_IN_BLOCK):
            return Feedback("raised", error)
        feedback = _judge_calls(net, calls, others, by_error=fails)
        if feedback.name != "right":
            return feedback
        calls.clear()
    return Feedback("right")


_ERROR_IN_BLOCK = "an error inside the block"


def _run_block(manager: AbstractContextManager[Any], net: Callable[..., Any], fails: bool) -> None:
    with manager:
        net(torch.ones(1))
        if fails:
            raise ValueError(_ERROR_IN_BLOCK)


def _judge_calls(net: nn.Sequential, calls: list[Any], others: list[RemovableHandle], *, by_error: bool) -> Feedback:
    """Judge whose hooks fired inside the block that has just ended, whether one stays, and whether all others stay."""
    inside = calls[:]
    net(torch.ones(1))
    if net in inside:
        return Feedback("whole")
    if inside != list(net):
        return Feedback("some" if inside else "never")
    if len(calls) > len(inside):
        return Feedback("error" if by_error else "stays")
    kept = all(other.id in layer._forward_hooks for other, layer in zip(others, net, strict=True))
    return Feedback("right" if kept else "foreign")


def _judge_hook_factory(answer: Any) -> Feedback:
    """Make three hooks with the learner's function, and then run them."""
    factors, hooks = (2, 3, 4), []
    for factor in factors:
        hook, fault = call_function(answer, factor)
        if fault:
            return fault
        hooks.append(hook)
    if all(hook is None for hook in hooks):
        return Feedback("no_return")
    if not all(map(callable, hooks)):
        return Feedback("no_hook")
    fault = next((fault for hook in hooks if (fault := check_tensor_hook(hook, torch.tensor(1.0)))), None)
    if fault is not None:
        return fault
    results = [hook(torch.tensor(10.0)).item() for hook in hooks]
    if results == [10.0 * factor for factor in factors]:
        return Feedback("right")
    return Feedback("same" if len(set(results)) == 1 else "other")


def _judge_hook_group(answer: Any) -> Feedback:
    """Use groups that the learner's class makes: alone, with an error in the block, and one inside another."""
    for judge in (_judge_one_group, _judge_two_groups):
        groups = []
        for _ in range(2):
            group, fault = call_function(answer)
            if fault:
                return fault
            if not isinstance(group, AbstractContextManager):
                return Feedback("no_manager")
            if not callable(getattr(group, "add", None)):
                return Feedback("no_add")
            groups.append(group)
        feedback, error = call_safely(judge, *groups)
        if error:
            return Feedback("failed", error)
        if feedback.name != "right":
            return Feedback(feedback.name, feedback.detail)
    return Feedback("right")


def _judge_one_group(group: Any, second_group: Any) -> Feedback:
    """Judge a group whose block ends normally, and one whose block ends in an error."""
    for manager, fails in ((group, False), (second_group, True)):
        net = _make_net()
        calls: list[Any] = []
        others = [layer.register_forward_hook(lambda *given: None) for layer in net]
        _, error = call_safely(_run_block, _Filled(manager, net, calls), net, fails)
        if error and not error.endswith(_ERROR_IN_BLOCK):
            return Feedback("failed", error)
        if fails and not error:
            return Feedback("swallows")
        feedback = _judge_calls(net, calls, others, by_error=fails)
        if feedback.name != "right":
            return feedback
    return Feedback("right")


class _Filled(AbstractContextManager[None]):
    """The block of a group to which a hook on each layer is added at its beginning."""

    def __init__(self, group: Any, net: nn.Sequential, calls: list[Any]) -> None:
        self._group, self._net, self._calls = group, net, calls

    def __enter__(self) -> None:
        self._group.__enter__()
        for layer in self._net:
            self._group.add(layer, lambda module, args, output: self._calls.append(module))

    def __exit__(self, *error: Any) -> bool | None:
        return bool(self._group.__exit__(*error))


def _judge_two_groups(outer: Any, inner: Any) -> Feedback:
    """Judge a group inside the block of another: the end of the inner one leaves the hooks of the outer one."""
    net, calls = _make_net(), []
    with outer:
        outer.add(net[0], lambda module, args, output: calls.append(module))
        with inner:
            inner.add(net[1], lambda module, args, output: calls.append(module))
        net(torch.ones(1))
    return Feedback("right" if calls == [net[0]] else "shared")


JUDGES: dict[str, Judge] = {
    "05.1": judge_number(_count_outputs_of_piled_hooks, {3: "each", 9: "all", 1: "overwritten", 0: "never"}),
    "05.2": judge_number(_count_copied_hooks, {3: "all", 0: "empty", 1: "one"}),
    "05.3": judge_number(_gradient_with_late_binding, {24: "own", 4: "last", 12: "added", 9: "summed", 1: "never"}),
    "05.4": _judge_causes,
    "05.5": judge_number(_count_outputs_in_the_sick_network, {20: "each", 190: "late", 400: "all", 1000: "images"}),
    "05.6": _judge_hook_factory,
    "05.7": _judge_context_manager,
    "05.8": _judge_hook_group,
}
