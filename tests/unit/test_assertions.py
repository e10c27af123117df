"""The assertions of ``hookviz.testing``: what they let pass, and what they list if they fail."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

from hookviz.testing import assert_gradients_reach, assert_hooks_fire


class Net(nn.Module):
    """Two layers and a head; ``cut`` detaches between them."""

    def __init__(self, cut: bool = False) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        self.head = nn.Linear(2, 1)
        self.unused = nn.Parameter(torch.zeros(3))
        self.cut = cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        out: torch.Tensor = self.head(h.detach() if self.cut else h)
        return out


def failure(run: Callable[[], None]) -> list[str]:
    """The lines of the message with which an assertion fails."""
    with pytest.raises(AssertionError) as raised:
        run()
    return str(raised.value).splitlines()


def test_parameters_behind_a_cut_are_listed_with_the_module_where_the_way_ends() -> None:
    net = Net(cut=True)
    head, *names, gap = failure(lambda: assert_gradients_reach(net, net(torch.ones(2)).sum()))
    assert head == "The loss does not reach 5 of 7 parameters that require grad:"
    assert names == ["  unused", "  body.0.weight", "  body.0.bias", "  body.1.weight", "  body.1.bias"]
    assert gap.startswith("No parameter of body is reached")


def test_frozen_and_excepted_parameters_need_not_be_reached_and_the_graph_stays_usable() -> None:
    net = Net(cut=True)
    net.body.requires_grad_(False)
    loss = net(torch.ones(2))
    assert_gradients_reach(net, loss, except_=["unused"])
    assert net.head.weight.grad is None
    loss.backward()
    assert net.head.weight.grad is not None


def test_an_unused_parameter_in_a_module_that_is_reached_is_explained_as_unused() -> None:
    net = Net()
    assert failure(lambda: assert_gradients_reach(net, net(torch.ones(2))))[1:] == [
        "  unused",
        "Other parameters of the same modules are reached: forward probably does not use these.",
    ]


def test_a_loss_without_history_reaches_nothing() -> None:
    net = Net()
    with torch.no_grad():
        loss = net(torch.ones(2)).sum()
    assert "has no history" in failure(lambda: assert_gradients_reach(net, loss))[-1]


def test_a_tied_parameter_is_named_by_both_names_and_excepted_by_either() -> None:
    net = nn.ModuleList([nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False), nn.Linear(2, 1)])
    net[1].weight = net[0].weight
    loss = net[2](torch.ones(2))
    assert failure(lambda: assert_gradients_reach(net, loss))[1] == "  0.weight = 1.weight"
    assert_gradients_reach(net, loss, except_="1.weight")


def test_bad_arguments_get_an_error_that_says_what_to_give() -> None:
    net = Net()
    loss = net(torch.ones(2))
    with pytest.raises(ValueError, match=r"matches the pattern haed\.\* in except_.*head\.weight"):
        assert_gradients_reach(net, loss, except_="haed.*")
    with pytest.raises(TypeError, match="function without arguments"):
        assert_hooks_fire(net, loss)  # type: ignore[arg-type]


def look(*_: object) -> None:
    """A hook that changes nothing."""


def run_net(net: nn.Module) -> Callable[[], object]:
    return lambda: net(torch.ones(1, 2)).sum().backward()


def test_hooks_that_do_not_fire_are_listed_with_kind_name_and_owner() -> None:
    net = Net(cut=True)
    net.register_forward_hook(look)
    net.body[0].register_full_backward_hook(look)
    net.unused.register_hook(look)
    head, *lines = failure(lambda: assert_hooks_fire(net, run_net(net)))
    assert head == "2 of 3 hooks did not fire:"
    hooks, causes = lines[::2], lines[1::2]
    assert {hook.partition(" (")[0]: cause.strip()[:40] for hook, cause in zip(hooks, causes, strict=True)} == {
        "  full backward hook look on net.body.0": "Nothing that net.body.0 computed belongs",
        "  tensor hook look on net.unused": "No gradient can reach net.unused, althou",
    }


def test_a_call_of_forward_fires_no_hook_of_the_module() -> None:
    net = Net()
    net.register_forward_hook(look)
    assert "1 of 1" in failure(lambda: assert_hooks_fire(net, lambda: net.forward(torch.ones(2))))[0]
    assert_hooks_fire(net, lambda: net.forward(torch.ones(2)), except_="look")
