"""Judges the answers to the exercises of lesson 08."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    call_answer,
    call_function,
    call_safely,
    check_callable,
    check_parameters,
    describe_shape,
    is_comparable,
    judge_number,
)

_DASH_SEED = torch.tensor([[1.0, 0.0]])
"""The seed for the first of the two classes, the dash."""


class _TinyNet(nn.Module):
    """The network of the lesson: its first feature map finds dashes, its second one bars."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu, self.head = nn.Conv2d(1, 2, 2), nn.ReLU(), nn.Linear(2, 2, bias=False)
        self.conv.weight.data = torch.tensor([[[[1.0, 1], [0, 0]]], [[[0, 1], [0, 1]]]])
        self.conv.bias.data = -torch.ones(2)  # type: ignore[union-attr]
        self.head.weight.data = torch.tensor([[8.0, -4], [-4, 8]])

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.relu(self.conv(picture)).mean((2, 3)))
        return scores

    def scores(self) -> torch.Tensor:
        """The scores of the picture with one dash and one bar."""
        scores: torch.Tensor = self(torch.tensor([[[[1.0, 1, 0], [0, 0, 1], [0, 0, 1]]]]))
        return scores


def _maps_and_gradient_at(net: _TinyNet, layer: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """The feature maps at ``layer`` and the gradient of the dash's score, as the lesson's two hooks store them."""
    stored: dict[str, torch.Tensor] = {}

    def keep_maps(module: nn.Module, args: Any, output: Any) -> None:
        stored["maps"] = output.detach().clone()
        output.register_hook(lambda grad: stored.update(grad=grad))

    layer.register_forward_hook(keep_maps)
    torch.autograd.backward(net.scores(), _DASH_SEED)
    return stored["maps"], stored["grad"]


def _heat_map(maps: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return (grad.mean((2, 3), keepdim=True) * maps).sum(1).relu()


def _weight_of_first_map() -> float:
    net = _TinyNet()
    return _maps_and_gradient_at(net, net.relu)[1].mean((2, 3))[0, 0].item()


def _heat_at_the_bar() -> float:
    net = _TinyNet()
    return _heat_map(*_maps_and_gradient_at(net, net.relu))[0, 1, 1].item()


def _score_without_second_map() -> float:
    net = _TinyNet()
    net.relu.register_forward_hook(lambda module, args, maps: maps * torch.tensor([1, 0]).view(2, 1, 1))
    return net.scores()[0, 0].item()


_COMMON_FORMULAS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "right": _heat_map,
    "negative": lambda maps, grad: (grad.mean((2, 3), keepdim=True) * maps).sum(1),
    "early": lambda maps, grad: (grad.mean((2, 3), keepdim=True) * maps).relu().sum(1),
    "sum": lambda maps, grad: (grad.sum((2, 3), keepdim=True) * maps).sum(1).relu(),
    "places": lambda maps, grad: (grad * maps).sum(1).relu(),
    "exchanged": lambda maps, grad: _heat_map(grad, maps),
    "batch": lambda maps, grad: (grad.mean((0, 2, 3))[:, None, None] * maps).sum(1).relu(),
    "average": lambda maps, grad: (grad.mean((2, 3), keepdim=True) * maps).mean(1).relu(),
    "unweighted": lambda maps, grad: maps.sum(1).relu(),
}
"""Name of feedback → what a learner may compute from maps and gradients."""


def _random_maps_and_gradient() -> tuple[torch.Tensor, torch.Tensor]:
    """Three maps of 4 × 5 numbers for two pictures, and gradients, for which all ``_COMMON_FORMULAS`` differ."""
    random = torch.Generator().manual_seed(0)
    maps, grad = (torch.randn(2, 3, 4, 5, generator=random) for _ in range(2))
    return maps, grad + torch.tensor([1.0, -1, 0.5]).view(3, 1, 1)


def _judge_heat_map(answer: Any) -> Feedback:
    """Call the learner's function with the maps and gradients of two pictures."""
    maps, grad = _random_maps_and_gradient()
    result, fault = call_answer(answer, maps, grad)
    if fault:
        return fault
    if not isinstance(result, torch.Tensor) or result.shape != (2, 4, 5):
        return Feedback("size", describe_shape(result))
    for name, compute in _COMMON_FORMULAS.items():
        if torch.allclose(result.float(), compute(maps, grad), atol=1e-5):
            return Feedback(name)
    return Feedback("other")


def _judge_seen_gradient(answer: Any) -> Feedback:
    """Register the learner's forward hook on the first of two layers, run a pass, and judge ``layer.seen``."""
    if fault := check_callable(answer):
        return fault
    layer, last = nn.Linear(2, 3), nn.Linear(3, 1)
    given = torch.tensor([[1.0, 2.0]], requires_grad=True)
    if fault := check_parameters(answer, layer, (given,), last.weight):
        return fault
    returned: list[Any] = []

    def hook(*given: Any) -> None:
        result = answer(*given)
        returned.append(None if result is given[2] else result)  # returning the output itself changes nothing

    layer.register_forward_hook(hook)
    _, error = call_safely(lambda: last(layer(given)).sum().backward())
    if returned and returned[0] is not None:  # this may cause an error in the next layer
        return Feedback("returned", type(returned[0]).__name__)
    if error:
        return Feedback("raised", error)
    if not torch.equal(layer.bias.grad, last.weight[0]):  # type: ignore[arg-type]
        return Feedback("changed")
    seen, output = getattr(layer, "seen", None), layer.forward(given).detach()
    return Feedback(_classify_seen_tensor(seen, last.weight.detach(), output))


def _classify_seen_tensor(seen: Any, grad: torch.Tensor, output: torch.Tensor) -> str:
    if not isinstance(seen, torch.Tensor):
        return "never"
    if seen.shape == grad.shape and torch.equal(seen, grad):
        return "right"
    return "output" if seen.shape == output.shape and torch.equal(seen, output) else "other"


class _NormNet(nn.Module):
    """A network whose maps differ between training and evaluation mode."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.head = nn.BatchNorm2d(2), nn.Linear(2, 3, bias=False)
        self.head.weight.data = torch.tensor([[1.0, -2], [-1, 3], [2, 1]])

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.norm(pictures).mean((2, 3)))
        return scores


_NORM_PICTURES = torch.tensor([[[[3.0, 0], [1, 2]], [[0, 1], [0, 4]]], [[[5.0, 1], [0, 0]], [[2, 2], [1, 0]]]])
_NORM_CLASSES = torch.tensor([0, 1])


def _judge_heat_function(answer: Any) -> Feedback:
    """Call the learner's function in the middle of a training, and again in ``no_grad``."""
    net = _NormNet().train()
    for parameter in net.parameters():
        parameter.grad = torch.ones_like(parameter)
    heat, fault = call_function(answer, net, net.norm, _NORM_PICTURES.clone(), _NORM_CLASSES)
    return fault or _judge_norm_heat(heat) or _judge_side_effects(net) or _judge_in_no_grad(answer)


def _judge_norm_heat(heat: Any) -> Feedback | None:
    expected = _norm_heat(_NormNet().eval())
    if not is_comparable(heat, expected):
        return Feedback("size", describe_shape(heat))
    if torch.allclose(heat.float(), expected, atol=1e-4):
        return None
    return Feedback("training" if torch.allclose(heat.float(), _norm_heat(_NormNet().train()), atol=1e-4) else "other")


def _norm_heat(net: _NormNet) -> torch.Tensor:
    """The heat of the two pictures: the head's weights, spread over the four places of a map, times the maps."""
    weights = net.head.weight[_NORM_CLASSES, :, None, None] / 4
    heat: torch.Tensor = (weights * net.norm(_NORM_PICTURES)).sum(1).relu().detach()
    return heat


def _judge_side_effects(net: _NormNet) -> Feedback | None:
    if any(parameter.grad is None or (parameter.grad != 1).any() for parameter in net.parameters()):
        return Feedback("grads")
    if net.norm._forward_hooks or net.norm._backward_hooks or net._forward_hooks:
        return Feedback("hook_left")
    if not net.training or not net.norm.training:
        return Feedback("mode_left")
    return None if all(parameter.requires_grad for parameter in net.parameters()) else Feedback("frozen")


def _judge_in_no_grad(answer: Any) -> Feedback:
    net = _NormNet()
    with torch.no_grad():
        _, error = call_safely(answer, net, net.norm, _NORM_PICTURES.clone(), _NORM_CLASSES)
    return Feedback("no_grad", error) if error else Feedback("right")


JUDGES: dict[str, Judge] = {
    "08.1": judge_number(_weight_of_first_map, {8: "spread", -1: "second", 0.25: "share", 1: "score"}),
    "08.2": judge_number(_heat_at_the_bar, {-1: "negative", 1: "map", 2: "dash", -2: "first"}),
    "08.3": judge_number(_score_without_second_map, {1: "same", 0: "fell", -1: "first", 3: "twice"}),
    "08.4": judge_number(lambda: 7.0, {5: "digit", 12: "sum"}),  # the class of the mark in the corner
    "08.5": judge_number(lambda: 8.0, {1: "different", 0: "itself", 7: "others"}),  # all heat maps are the same
    "08.6": _judge_heat_map,
    "08.7": _judge_seen_gradient,
    "08.8": _judge_heat_function,
}
