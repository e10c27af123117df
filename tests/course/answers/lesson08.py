"""Right and wrong answers to what lesson 08 asks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises


def weights(grad: torch.Tensor) -> torch.Tensor:
    return grad.mean((2, 3), keepdim=True)


LISTEN = 'output.register_hook(lambda grad: setattr(module, "seen", grad))'
keeps = partial(changed, f"def keeps(module, args, output):\n    {LISTEN}", "keeps")


def heat_map(
    *, evaluate: bool = True, restore: bool = True, remove: bool = True, pure: bool = True, enable: bool = True
) -> Callable[..., Any]:
    """A function that computes heat; without some of what makes it right, it leaves traces or fails in ``no_grad``."""

    def answer(net: Any, layer: Any, pictures: Any, classes: Any) -> torch.Tensor:
        kept: list[torch.Tensor] = []
        net.train(not evaluate)
        handle = layer.register_forward_hook(lambda module, args, output: kept.append(output))
        with torch.set_grad_enabled(enable or torch.is_grad_enabled()):
            scores = net(pictures)
            (maps,) = kept
            seed = torch.nn.functional.one_hot(classes, scores.shape[1]).float()
            if pure:
                (grad,) = torch.autograd.grad(scores, maps, seed)
            else:
                maps.retain_grad()
                scores.backward(seed)
                grad = maps.grad
        if remove:
            handle.remove()
        net.train(restore)
        return (weights(grad) * maps).sum(1).relu().detach()

    return answer


def freezes(net: Any, layer: Any, pictures: Any, classes: Any) -> Any:
    heat = heat_map()(net, layer, pictures, classes)
    net.requires_grad_(requires_grad=False)
    return heat


RIGHT: dict[str, Any] = {
    "08.1": 2,
    "08.2": 0,
    "08.3": torch.tensor(2.0),
    "08.4": 7,
    "08.5": 8,
    "08.6": lambda maps, grad: (weights(grad) * maps).sum(1).clamp(min=0),
    "08.7": keeps(),
    "08.8": heat_map(),
}
WRONG: dict[str, list[Any]] = {
    "08.1": [8, -1, 0.25, 1, 5],
    "08.2": [-1, 1, 2, -2, 5],
    "08.3": [1, 0, -1, 3, 5],
    "08.4": [5, 12, 3],
    "08.5": [1, 0, 7, 3],
    "08.6": [
        lambda maps, grad: (weights(grad) * maps).sum(1),
        lambda maps, grad: (weights(grad) * maps).relu().sum(1),
        lambda maps, grad: (grad.sum((2, 3), keepdim=True) * maps).sum(1).relu(),
        lambda maps, grad: (grad * maps).sum(1).relu(),
        lambda maps, grad: (weights(maps) * grad).sum(1).relu(),
        lambda maps, grad: (grad.mean((0, 2, 3), keepdim=True) * maps).sum(1).relu(),
        lambda maps, grad: (weights(grad) * maps).mean(1).relu(),
        lambda maps, grad: maps.sum(1).relu(),
        lambda maps, grad: (weights(grad) * maps).relu(),
        lambda maps, grad: maps[:, 0],
        lambda maps, grad: print(maps.shape, grad.shape),
        lambda maps, grad: maps.mul_(weights(grad)).sum(1).relu(),
        raises,
    ],
    "08.7": [
        keeps((LISTEN, f"return {LISTEN}")),
        keeps((LISTEN, "module.seen = output.grad_fn")),
        keeps((LISTEN, "module.seen = output.detach()")),
        keeps(('"seen", grad', '"seen", grad / 2')),
        keeps(('"seen", grad)', '"seen", grad) or grad * 2')),
        lambda module, grad_input, grad_output, more: None,
        raises,
    ],
    "08.8": [
        heat_map(evaluate=False),
        heat_map(restore=False),
        heat_map(remove=False),
        heat_map(pure=False),
        heat_map(enable=False),
        freezes,
        lambda net, layer, pictures, classes: heat_map()(net, layer, pictures, 1 - classes),
        lambda net, layer, pictures, classes: heat_map()(net, layer, pictures, classes)[0],
        raises,
    ],
}
