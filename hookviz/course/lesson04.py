"""Judges the answers to the exercises of lesson 04."""

import warnings
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    as_float,
    call_answer,
    call_backward_hook,
    call_safely,
    judge_number,
    judge_word,
)
from hookviz.course.sick_net import SickNet


class _ProductNet(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return (a * b) * d


def _record_grad_inputs(module: nn.Module, *inputs: torch.Tensor, on: nn.Module) -> list[Any]:
    """Run one pass; list the ``grad_input`` of each firing of a hook on ``on``."""
    given: list[Any] = []
    on.register_full_backward_hook(lambda module, grad_input, grad_output: given.append(grad_input))
    _run_without_warnings(module, *inputs)
    return given


def _run_without_warnings(module: nn.Module, *inputs: torch.Tensor) -> None:
    """Run a forward and a backward pass; torch warns of what the lesson explains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.autograd.backward(module(*inputs).sum())


def _first_grad_input() -> float:
    """The first entry of the ``grad_input`` of a hook on ProductNet."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    net = _ProductNet()
    return float(_record_grad_inputs(net, a, b, d, on=net)[0][0])


def _two_layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 5), nn.Linear(5, 10))


def _count_early_gradients() -> float:
    """How many parameters have a gradient when the hook on the first layer fires, if no input requires one."""
    net, counts = _two_layers(), []

    def count(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        counts.append(sum(parameter.grad is not None for parameter in net.parameters()))

    net[0].register_full_backward_hook(count)
    _run_without_warnings(net, torch.ones(2))
    return float(counts[0])


def _size_of_grad_input() -> float:
    """How many numbers the ``grad_input`` of a hook on the second layer has."""
    net = _two_layers()
    return float(_record_grad_inputs(net, torch.ones(2), on=net[1])[0][0].numel())


def _weight_gradient() -> float:
    """The gradient of a layer's weight if a full backward hook divides ``grad_input`` by ten."""

    def tenth(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
        return (0.1 * grad_input[0],)

    layer = nn.Linear(1, 1, bias=False)
    layer.register_full_backward_hook(tenth)
    torch.autograd.backward(layer(torch.tensor([[2.0]], requires_grad=True)))
    assert layer.weight.grad is not None
    return layer.weight.grad.item()


def _count_firing_hooks() -> float:
    """How many of the hooks on ten modules of the network that does not learn fire."""
    net, fired = SickNet(), []
    for module in (net.stem, *net.body, net.pool, net.neck, net.relu, net.head):
        module.register_full_backward_hook(lambda module, grad_input, grad_output: fired.append(module))
    _run_without_warnings(net, torch.ones(2, 1, 8, 8))
    return float(len(fired))


def _judge_sign_flip(answer: Any) -> Feedback:
    """Call the learner's hook as modules with one and with two inputs would, and judge the signs."""
    feedback = Feedback("right")
    for grads in ((-3.0,), (4.0, -5.0)):
        grad_input = tuple(torch.tensor(grad) for grad in grads)
        given = _ProductNet(), grad_input, (torch.tensor(7.0),)
        result, fault = call_backward_hook(answer, *given)
        if fault and fault.name == "raised" and not call_safely(answer, given[0], grad_input[0], given[2])[1]:
            return Feedback("entries")
        if fault:
            return fault
        feedback = _compare_with_gradients(tuple(as_float(value) for value in result), grads)
        if feedback.name != "right":
            return feedback
    return feedback


def _compare_with_gradients(numbers: tuple[float | None, ...], grads: tuple[float, ...]) -> Feedback:
    if numbers == (-7.0,):
        return Feedback("output")
    if len(numbers) != len(grads):
        return Feedback("count", str(len(numbers)), str(len(grads)))
    return Feedback({tuple(-grad for grad in grads): "right", grads: "unchanged"}.get(numbers, "other"))  # type: ignore[arg-type]


class _ThreeChildren(nn.Module):
    """Its children have names that are no numbers, and its input requires no gradient."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.stem = nn.Linear(2, 3)
            self.bend = nn.Tanh()
            self.head = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.bend(self.stem(x)))  # type: ignore[no-any-return]


def _measure_children() -> tuple[dict[str, float], dict[str, float], list[torch.Tensor]]:
    """Run _ThreeChildren; return the norms that come in to and go out of each child, and its parameters' gradients."""
    model, came_in, went_out = _ThreeChildren(), {}, {}
    for name, child in model.named_children():

        def measure(module: nn.Module, grad_input: Any, grad_output: Any, name: str = name) -> None:
            came_in[name] = grad_output[0].norm().item()
            went_out[name] = 0.0 if grad_input[0] is None else grad_input[0].norm().item()

        child.register_full_backward_hook(measure)
    _run_without_warnings(model, torch.ones(4, 2))
    return came_in, went_out, _gradients(model)


def _gradients(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None]


def _judge_watch(answer: Any) -> Feedback:
    """Call the learner's function on a model, run a pass, and judge what its dict holds."""
    model = _ThreeChildren()
    norms, fault = call_answer(answer, model)
    if fault:
        return fault
    if not isinstance(norms, dict):
        return Feedback("no_dict", type(norms).__name__)
    if norms:
        return Feedback("early")
    _, error = call_safely(_run_without_warnings, model, torch.ones(4, 2))
    if error:
        return Feedback("none_entry") if "NoneType" in error else Feedback("raised", error)
    came_in, went_out, grads = _measure_children()
    found = _gradients(model)
    if len(found) != len(grads) or not all(map(torch.allclose, found, grads)):
        return Feedback("changed")
    return _compare_norms(norms, came_in, went_out)


def _compare_norms(norms: dict[Any, Any], came_in: dict[str, float], went_out: dict[str, float]) -> Feedback:
    if not norms:
        return Feedback("empty")
    if len(norms) == 1:
        return Feedback("one_name", str(next(iter(norms))))
    if set(norms) != set(came_in):
        return Feedback("children", ", ".join(map(str, norms)))
    if not all(isinstance(value, int | float) for value in norms.values()):
        return Feedback("tensor")
    if all(abs(norms[name] - came_in[name]) < 1e-4 for name in came_in):
        return Feedback("right")
    return Feedback("output" if any(abs(norms[name] - went_out[name]) < 1e-4 for name in came_in) else "other")


JUDGES: dict[str, Judge] = {
    "04.1": judge_number(_first_grad_input, {4: "inside", 8: "b", 6: "d", 1: "output", 24: "value", 2: "input"}),
    "04.2": judge_number(_count_early_gradients, {0: "none_yet", 4: "all", 1: "half", 3: "half"}),
    "04.3": judge_word({"weight": "right", "x": "input", "both": "both", "none": "neither"}),
    "04.4": judge_number(_weight_gradient, {0.2: "scaled", 3: "of_x", 0.3: "of_x", 0: "wiped"}),
    "04.5": judge_number(_count_firing_hooks, {10: "all", 8: "none_entry", 5: "blocks", 4: "blocks", 6: "body"}),
    "04.6": _judge_sign_flip,
    "04.7": judge_number(_size_of_grad_input, {10: "output", 2: "first", 0: "missing", 50: "weight"}),
    "04.8": _judge_watch,
}
