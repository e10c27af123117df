"""Judges the answers to the exercises of lesson 06."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    call_safely,
    check_callable,
    ignore_rounding,
    judge_number,
    list_tensors,
)


class _SaveValues(dict[str, Any]):
    """The lesson's class that stores what the hooks of a layer get."""

    def __init__(self, layer: nn.Module) -> None:
        layer.register_forward_hook(self._on_forward)
        layer.register_full_backward_hook(self._on_backward)

    def _on_forward(self, module: nn.Module, args: Any, output: Any) -> None:
        self.update(module=module, input=args, output=output)

    def _on_backward(self, module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        self.update(grad_input=grad_input, grad_output=grad_output)


class _Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def _count_values_before_backward() -> float:
    """How many values are stored after a call and before backward."""
    layer = nn.Linear(1, 1)
    saved = _SaveValues(layer)
    layer(torch.ones(1))
    return float(len(saved))


def _stored_input_after_change() -> float:
    """The first number of a stored input after 1.2 was added to the input in place."""
    layer, x = nn.Linear(2, 1), torch.ones(2)
    saved = _SaveValues(layer)
    layer(x)
    x += 1.2
    stored: torch.Tensor = saved["input"][0]
    return round(stored[0].item(), 6)


def _smallest_stored_output() -> float:
    """The smallest of three numbers stored with ``detach().cpu()`` before an in-place ReLU."""
    stored: list[torch.Tensor] = []
    layer = nn.Identity()
    layer.register_forward_hook(lambda module, args, output: stored.append(output.detach().cpu()))
    nn.Sequential(layer, nn.ReLU(inplace=True))(torch.tensor([-3.0, -1.0, 2.0]))
    return stored[0].min().item()


def _stored_grad_output() -> float:
    """The stored ``grad_output`` of a module that doubles, after it is called three times."""
    double = _Double()
    saved = _SaveValues(double)
    torch.autograd.backward(nn.Sequential(double, double, double)(torch.tensor(1.0, requires_grad=True)))
    gradient: torch.Tensor = saved["grad_output"][0]
    return gradient.item()


class _Block(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self[0](super().forward(x) + x)  # type: ignore[no-untyped-call]
        return summed


def _count_stored_outputs() -> float:
    """How many outputs a list has after three passes through a block that calls its ReLU twice."""
    block, outputs = _Block(nn.ReLU()), []
    block[0].register_forward_hook(lambda module, args, output: outputs.append(output))
    for _ in range(3):
        block(torch.ones(1))
    return float(len(outputs))


def _judge_output_list(answer: Any) -> Feedback:
    """Put the learner's hook on a layer, overwrite each of its outputs in place, and judge the list."""
    if fault := check_callable(answer):
        return fault
    layer = nn.Linear(1, 2, bias=False)
    layer.weight = nn.Parameter(torch.tensor([[-3.0], [2.0]]))
    stored, error = call_safely(answer, layer)
    if error:
        return Feedback("raised", error)
    if not isinstance(stored, list):
        return Feedback("no_list")
    returned, error = call_safely(lambda: [layer(torch.tensor([number])).relu_() for number in (1.0, 10.0)])
    if error:
        return Feedback("raised", error)
    return _check_outputs(returned) or _judge_stored_outputs(stored)


def _check_outputs(returned: list[Any]) -> Feedback | None:
    """Feedback if the learner's hook replaces the layer's outputs."""
    tensors = list_tensors(tuple(returned))
    if [tensor.tolist() for tensor in tensors] == [[0, 2], [0, 20]] and all(tensor.requires_grad for tensor in tensors):
        return None
    return Feedback("replaced")


def _judge_stored_outputs(stored: list[Any]) -> Feedback:
    if len(stored) != 2:
        return Feedback("count", str(len(stored)))
    if not all(isinstance(output, torch.Tensor) for output in stored):
        return Feedback("no_tensor")
    has_graph = any(output.requires_grad for output in stored)
    numbers = [output.tolist() for output in stored]
    if numbers == [[0, 2], [0, 20]]:
        return Feedback("as_it_is" if has_graph else "storage")
    if numbers != [[-3, 2], [-30, 20]]:
        return Feedback("other")
    return Feedback("graph" if has_graph else "right")


JUDGES: dict[str, Judge] = {
    "06.1": judge_number(_count_values_before_backward, {5: "all", 2: "two", 1: "one", 0: "none_yet"}),
    "06.2": ignore_rounding(judge_number(_stored_input_after_change, {1: "copy", 1.2: "step"})),
    "06.3": judge_number(_smallest_stored_output, {-3: "computed", -1: "second", 2: "largest"}),
    "06.4": judge_number(_stored_grad_output, {1: "last", 2: "middle", 8: "sent"}),
    "06.5": _judge_output_list,
    "06.6": judge_number(_count_stored_outputs, {3: "once", 2: "one_pass", 1: "overwritten", 9: "all"}),
}
