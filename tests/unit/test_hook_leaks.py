"""``LeakWatch`` finds new hooks on what existed when a test began, and on nothing else."""

from typing import Any

import torch
from torch import nn

from hookviz.testing.hook_leaks import LeakWatch


def look(*_: Any) -> None:
    """A hook that changes nothing."""


def found(watch: LeakWatch, **names: Any) -> list[tuple[str, str]]:
    """(kind, owner) of each hook that was left behind."""
    return sorted((hook.kind, hook.on) for hook in watch.find(names))


def test_new_hooks_on_modules_parameters_tensors_and_optimizers_are_found() -> None:
    net, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD(net.parameters())
    net.register_forward_hook(look)
    watch = LeakWatch()
    net[0].register_forward_pre_hook(look)
    net[0].bias.register_post_accumulate_grad_hook(look)
    x.register_hook(look)
    optimizer.register_step_pre_hook(look)
    assert found(watch, net=net, x=x) == [
        ("forward_pre_hook", "net.0"),
        ("post_accumulate_hook", "net.0.bias"),
        ("step_pre_hook", "SGD"),
        ("tensor_hook", "x"),
    ]


def test_watching_keeps_nothing_alive_and_tensors_can_still_be_swapped() -> None:
    import weakref

    net, a, b = nn.Linear(2, 2), torch.ones(1), torch.zeros(1)
    reference = weakref.ref(net)
    watch = LeakWatch()
    torch.utils.swap_tensors(a, b)
    del net
    assert reference() is None and found(watch) == []
