"""Judges the answers to the exercises of lesson 06."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    as_float,
    call_safely,
    check_callable,
    ignore_rounding,
    is_comparable,
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


def _judge_smallest_number(answer: Any) -> Feedback:
    """Judge the smallest stored number; what the layer computed has other numbers in each trained network."""
    number = as_float(answer)
    if number is not None and number < 0:
        return Feedback("computed")
    return judge_number(_smallest_stored_output, {})(answer)


def _sum_of_hooked_gradient() -> float:
    """The sum of the gradient that a hook sees at a tensor before a ReLU writes over it in place."""
    seen: list[torch.Tensor] = []
    features: Any = torch.tensor([-3.0, -1.0, 2.0], requires_grad=True) * 1
    features.register_hook(seen.append)
    torch.autograd.backward(features.relu_().sum())
    return seen[0].sum().item()


def _stored_grad_output() -> float:
    """The stored ``grad_output`` of a module that doubles, after it is called three times."""
    double = _Double()
    saved = _SaveValues(double)
    torch.autograd.backward(nn.Sequential(double, double, double)(torch.tensor(1.0, requires_grad=True)))
    gradient: torch.Tensor = saved["grad_output"][0]
    return gradient.item()


def _judge_largest_number(answer: Any) -> Feedback:
    """Judge the largest number that the stem of the network that does not learn is given: 16 / 255."""
    number = as_float(answer)
    if number is None:
        return Feedback("number")
    if abs(number - 16 / 255) < 0.005:
        return Feedback("right")
    others: dict[float, str] = {16: "given", 1: "usual", 255: "photograph"}
    return Feedback(others.get(number, "other"))


class _ResidualBlock(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self[0](super().forward(x) + x)  # type: ignore[no-untyped-call]
        return summed


def _count_stored_outputs() -> float:
    """How many outputs a list has after three passes through a block that calls its ReLU twice."""
    block, outputs = _ResidualBlock(nn.ReLU()), []
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


class _Scaled(nn.Module):
    """A network for features whose ReLU works in place; in training mode the layer returns other numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.BatchNorm2d(2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        if pictures.dim() != 4:
            raise ValueError("these are not pictures")
        features: torch.Tensor = self.relu(self.layer(pictures))
        return features


_PICTURES = torch.tensor([-3.0, 2, 5, -1, 4, -2, 0.5, -4, -0.5, 1, -6, 3]).view(3, 2, 1, 2)


def _judge_extraction(answer: Any) -> Feedback:
    """Let the learner's function collect the features of three pictures in two batches; the second one is smaller."""
    if fault := check_callable(answer):
        return fault
    net = _Scaled().train()
    expected = _Scaled().eval().layer(_PICTURES).detach().flatten(1)
    rows, error = call_safely(answer, net, net.layer, [_PICTURES[:2].clone(), _PICTURES[2:].clone()])
    if error:
        return Feedback("raised", error)
    return _judge_rows(rows, expected) or _judge_traces(net) or _judge_after_error(answer) or Feedback("right")


def _judge_rows(rows: Any, expected: torch.Tensor) -> Feedback | None:
    if not isinstance(rows, torch.Tensor):
        return Feedback("no_tensor", type(rows).__name__)
    if rows.shape == expected[2:].shape:
        return Feedback("last_batch")
    if not is_comparable(rows, expected):
        return Feedback("size", str(tuple(rows.shape)))
    if torch.allclose(rows.float(), expected.relu()):
        return Feedback("overwritten")
    if not torch.allclose(rows.float(), expected):
        return Feedback("training")
    return Feedback("graph") if rows.requires_grad else None


def _judge_traces(net: _Scaled) -> Feedback | None:
    """Feedback if the learner's function has left something behind on the network."""
    if net.layer._forward_hooks or net._forward_hooks:
        return Feedback("hook_left")
    if not net.training or not net.layer.training:
        return Feedback("mode_left")
    return None if all(parameter.requires_grad for parameter in net.parameters()) else Feedback("frozen")


def _judge_after_error(answer: Any) -> Feedback | None:
    """Feedback if the learner's function hides an error of the network, or leaves something behind after it."""
    net = _Scaled().train()
    _, error = call_safely(answer, net, net.layer, [_PICTURES[:2], torch.ones(3)])
    if not error:
        return Feedback("hidden_error")
    return None if _judge_traces(net) is None else Feedback("after_error")


JUDGES: dict[str, Judge] = {
    "06.1": judge_number(_count_values_before_backward, {5: "all", 2: "two", 1: "one", 0: "none_yet"}),
    "06.2": ignore_rounding(judge_number(_stored_input_after_change, {1: "copy", 1.2: "step"})),
    "06.3": _judge_smallest_number,
    "06.4": _judge_largest_number,
    "06.5": judge_number(_sum_of_hooked_gradient, {3: "behind", 0: "blocked", 2: "features", -2: "features"}),
    "06.6": judge_number(_stored_grad_output, {1: "last", 2: "middle", 8: "sent"}),
    "06.7": _judge_output_list,
    "06.8": judge_number(_count_stored_outputs, {3: "once", 2: "one_pass", 1: "overwritten", 9: "all"}),
    "06.9": _judge_extraction,
}
