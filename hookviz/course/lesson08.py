"""What lesson 08 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Judge, misfit, no_function, number, result_of, tried

_DASH = torch.tensor([[1.0, 0.0]])
"""The seed that asks about the first of the two classes."""


class _Tiny(nn.Module):
    """The network of the lesson: its first map finds dashes, its second one bars."""

    def __init__(self, *, inplace: bool = False) -> None:
        super().__init__()
        self.conv, self.relu, self.head = nn.Conv2d(1, 2, 2), nn.ReLU(inplace), nn.Linear(2, 2, bias=False)
        self.conv.weight.data = torch.tensor([[[[1.0, 1], [0, 0]]], [[[0, 1], [0, 1]]]])
        self.conv.bias.data = -torch.ones(2)  # type: ignore[union-attr]
        self.head.weight.data = torch.tensor([[8.0, -4], [-4, 8]])

    def forward(self, picture: torch.Tensor) -> torch.Tensor:
        scores: torch.Tensor = self.head(self.relu(self.conv(picture)).mean((2, 3)))
        return scores

    def scores(self) -> torch.Tensor:
        """Of the picture with one dash and one bar."""
        scores: torch.Tensor = self(torch.tensor([[[[1.0, 1, 0], [0, 0, 1], [0, 0, 1]]]]))
        return scores


def _kept(net: _Tiny, layer: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """What the lesson's two hooks keep at ``layer``: the maps, and the gradient of the dash's score at them."""
    kept: dict[str, torch.Tensor] = {}

    def keep_maps(module: nn.Module, args: Any, output: Any) -> None:
        kept["maps"] = output.detach().clone()
        output.register_hook(lambda grad: kept.update(grad=grad))

    layer.register_forward_hook(keep_maps)
    torch.autograd.backward(net.scores(), _DASH)
    return kept["maps"], kept["grad"]


def _heat(maps: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    return (grad.mean((2, 3), keepdim=True) * maps).sum(1).relu()


def _first_weight() -> float:
    net = _Tiny()
    return _kept(net, net.relu)[1].mean((2, 3))[0, 0].item()


def _heat_at_the_bar() -> float:
    net = _Tiny()
    return _heat(*_kept(net, net.relu))[0, 1, 1].item()


def _without_the_second_map() -> float:
    net = _Tiny()
    net.relu.register_forward_hook(lambda module, args, maps: maps * torch.tensor([1, 0]).view(2, 1, 1))
    return net.scores()[0, 0].item()


def _seen_by_the_hook() -> float:
    net = _Tiny(inplace=True)
    return _kept(net, net.conv)[1][0, 0].mean().item()


_USUAL: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "right": _heat,
    "negative": lambda maps, grad: (grad.mean((2, 3), keepdim=True) * maps).sum(1),
    "early": lambda maps, grad: (grad.mean((2, 3), keepdim=True) * maps).relu().sum(1),
    "sum": lambda maps, grad: (grad.sum((2, 3), keepdim=True) * maps).sum(1).relu(),
    "places": lambda maps, grad: (grad * maps).sum(1).relu(),
    "exchanged": lambda maps, grad: _heat(grad, maps),
    "batch": lambda maps, grad: (grad.mean((0, 2, 3))[:, None, None] * maps).sum(1).relu(),
    "average": lambda maps, grad: (grad.mean((2, 3), keepdim=True) * maps).mean(1).relu(),
    "unweighted": lambda maps, grad: maps.sum(1).relu(),
}
"""What learners compute from maps and gradients."""


def _maps_and_grad() -> tuple[torch.Tensor, torch.Tensor]:
    """Two pictures with three maps of 4 × 5 numbers, of both signs, on which all of ``_USUAL`` differ."""
    random = torch.Generator().manual_seed(0)
    maps, grad = (torch.randn(2, 3, 4, 5, generator=random) for _ in range(2))
    return maps, grad + torch.tensor([1.0, -1, 0.5]).view(3, 1, 1)


def _heating(answer: Any) -> Found:
    """Call the learner's function with the maps and gradients of two pictures."""
    maps, grad = _maps_and_grad()
    result, fault = result_of(answer, maps, grad)
    if fault:
        return fault
    if not isinstance(result, torch.Tensor) or result.shape != (2, 4, 5):
        return Found("size", str(tuple(result.shape)) if isinstance(result, torch.Tensor) else type(result).__name__)
    found = (name for name, usual in _USUAL.items() if torch.allclose(result.float(), usual(maps, grad), atol=1e-5))
    return Found(next(found, "other"))


def _seeing(answer: Any) -> Found:
    """Register the learner's forward hook on the first of two layers, and look at what a pass leaves."""
    if fault := no_function(answer):
        return fault
    layer, last = nn.Linear(2, 3), nn.Linear(3, 1)
    given = torch.tensor([[1.0, 2.0]], requires_grad=True)
    if fault := misfit(answer, layer, (given,), last.weight):
        return fault
    returned: list[Any] = []

    def hook(*given: Any) -> None:
        result = answer(*given)
        returned.append(None if result is given[2] else result)  # an output in its own place changes nothing

    layer.register_forward_hook(hook)
    _, error = tried(lambda: last(layer(given)).sum().backward())
    if returned and returned[0] is not None:  # an error of the next layer comes from this
        return Found("returned", type(returned[0]).__name__)
    if error:
        return Found("raised", error)
    if not torch.equal(layer.bias.grad, last.weight[0]):  # type: ignore[arg-type]
        return Found("changed")
    return Found(_what_was_seen(getattr(layer, "seen", None), last.weight.detach(), layer.forward(given).detach()))


def _what_was_seen(seen: Any, grad: torch.Tensor, output: torch.Tensor) -> str:
    if not isinstance(seen, torch.Tensor):
        return "never"
    if seen.shape == grad.shape and torch.equal(seen, grad):
        return "right"
    return "output" if seen.shape == output.shape and torch.equal(seen, output) else "other"


JUDGES: dict[str, Judge] = {
    "08.1": number(_first_weight, {8: "spread", -1: "second", 0.25: "share", 1: "score"}),
    "08.2": number(_heat_at_the_bar, {-1: "negative", 1: "map", 2: "dash", -2: "first"}),
    "08.3": number(_without_the_second_map, {1: "same", 0: "fell", -1: "first", 3: "twice"}),
    "08.4": number(_seen_by_the_hook, {2: "after", 0: "blocked", -1: "second", -0.25: "second", 0.25: "places"}),
    "08.5": _heating,
    "08.6": _seeing,
}
