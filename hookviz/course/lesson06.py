"""Judges the answers to the exercises of lesson 06."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    as_float,
    call_function,
    call_safely,
    has_forward_hook,
    ignore_rounding,
    is_comparable,
    judge_number,
    judge_word,
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


def _stored_grad_output() -> float:
    """The stored ``grad_output`` of a module that doubles, after it is called three times."""
    double = _Double()
    saved = _SaveValues(double)
    torch.autograd.backward(nn.Sequential(double, double, double)(torch.tensor(1.0, requires_grad=True)))
    gradient: torch.Tensor = saved["grad_output"][0]
    return gradient.item()


def _judge_output_list(answer: Any) -> Feedback:
    """Put the learner's hook on a layer, overwrite each of its outputs in place, and judge the list."""
    layer = nn.Linear(1, 2, bias=False)
    layer.weight = nn.Parameter(torch.tensor([[-3.0], [2.0]]))
    stored, fault = call_function(answer, layer)
    if fault:
        return fault
    if not isinstance(stored, list):
        return Feedback("no_list")
    returned, fault = call_function(lambda: [layer(torch.tensor([number])).relu_() for number in (1.0, 10.0)])
    return fault or _check_outputs(returned) or _judge_stored_outputs(stored)


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
        nn.init.constant_(self.layer.weight, 2.0)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        if pictures.dim() != 4:
            raise ValueError("these are not pictures")
        features: torch.Tensor = self.relu(self.layer(pictures))
        return features


class _TwoOutputs(nn.Module):
    """A layer that returns a tuple, as an LSTM does."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        return x * 2, (x + 1, x - 1)


class _TakesFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = _TwoOutputs()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first: torch.Tensor = self.layer(x)[0]
        return first


_PICTURES = torch.tensor([-3.0, 2, 5, -1, 4, -2, 0.5, -4, -0.5, 1, -6, 3, 7, -8, -1.5, 6]).view(4, 2, 1, 2)


def _judge_extraction(answer: Any) -> Feedback:
    """Let the learner's function collect the features of four pictures in two batches; the second one is smaller."""
    model = _Scaled().train()
    expected = _Scaled().eval().layer(_PICTURES).detach()
    features, fault = call_function(answer, model, model.layer, [_PICTURES[:3].clone(), _PICTURES[3:].clone()])
    fault = fault or _judge_features(features, expected) or _judge_traces(model) or _judge_tuple(answer)
    return fault or _judge_after_error(answer) or Feedback("right")


def _judge_features(features: Any, expected: torch.Tensor) -> Feedback | None:
    if features is None:
        return Feedback("nothing_returned")
    if isinstance(features, list | tuple | dict):
        return Feedback("collection", type(features).__name__)
    if not isinstance(features, torch.Tensor):
        return Feedback("no_tensor", type(features).__name__)
    if features.shape == expected[3:].shape:
        return Feedback("last_batch")
    if features.shape == expected[:3].shape:
        return Feedback("first_batch")
    if features.shape != expected.shape and features.numel() == expected.numel():
        return Feedback("reshaped", str(tuple(features.shape)))
    if not is_comparable(features, expected):
        return Feedback("size", str(tuple(features.shape)))
    if torch.allclose(features.float(), expected.relu()):
        return Feedback("overwritten")
    if torch.allclose(features.float(), _PICTURES):
        return Feedback("given")
    if not torch.allclose(features.float(), expected):
        return Feedback("training")
    return Feedback("graph") if features.requires_grad else None


def _judge_traces(model: nn.Module) -> Feedback | None:
    """Feedback if the learner's function has left something behind on the model, which was in training mode."""
    if any(map(has_forward_hook, model.modules())):
        return Feedback("hook_left")
    if not all(module.training for module in model.modules()):
        return Feedback("mode_left")
    return None if all(parameter.requires_grad for parameter in model.parameters()) else Feedback("frozen")


def _judge_tuple(answer: Any) -> Feedback | None:
    """Feedback if the learner's function fails on a layer that returns a tuple, or on a model in evaluation mode."""
    model = _TakesFirst().eval()
    x = torch.tensor([[1.0, 2.0]])
    features, error = call_safely(answer, model, model.layer, [x, x + 1])
    if error:
        return Feedback("tuple_raises", error)
    if not is_comparable(features, torch.cat([x, x + 1])) or features.tolist() != [[2, 4], [4, 6]]:
        return Feedback("tuple")
    return Feedback("switched_on") if model.training else None


def _judge_after_error(answer: Any) -> Feedback | None:
    """Feedback if the learner's function hides an error of the network, or leaves something behind after it."""
    model = _Scaled().train()
    _, error = call_safely(answer, model, model.layer, [_PICTURES[:2], torch.ones(3)])
    if not error:
        return Feedback("hidden_error")
    left = _judge_traces(model)
    if left is None:
        return None
    return Feedback("hook_after_error" if left.name == "hook_left" else "mode_after_error")


JUDGES: dict[str, Judge] = {
    "06.1": judge_number(_count_values_before_backward, {5: "all", 2: "two", 1: "one", 0: "none_yet"}),
    "06.2": ignore_rounding(judge_number(_stored_input_after_change, {1: "copy", 1.2: "step"})),
    "06.3": judge_number(_stored_grad_output, {1: "last", 2: "middle", 8: "sent"}),
    "06.4": _judge_smallest_number,
    "06.5": judge_word({"smaller": "right", "larger": "larger", "the same": "same", "same": "same"}),
    "06.6": _judge_output_list,
    "06.7": _judge_extraction,
}
