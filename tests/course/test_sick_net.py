"""The network of the course does not learn; each cure helps, and each of its faults can be seen with hooks."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import hookviz as hv
from hookviz.course import cures
from hookviz.course.sick_net import SickNet, keep_small, measure_accuracy, read_digits, train
from tests.missing import missing_gradients

CURES = ("bend", "bias", "scale", "cut", "hook", "optimizer")


class CuredNet(SickNet):
    """The network with some of its faults cured."""

    def __init__(self, *cures: str) -> None:
        super().__init__()
        self.cures = cures
        if "bend" in cures:
            for block in self.body:
                block.bend = nn.ReLU()
        if "bias" in cures:
            nn.init.zeros_(self.neck.bias)
        if "hook" in cures:
            self.head.weight._backward_hooks = None
        if "optimizer" in cures:
            self.classifier = self.head
            del self._modules["head"]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.stem(images / (16 if "scale" in self.cures else 255))
        features = self.body(features if "cut" in self.cures else features.detach())
        features = self.relu(self.neck(self.pool(features).flatten(1)))
        last = self.classifier if "optimizer" in self.cures else self.head
        return last(features)  # type: ignore[no-any-return]


def train_and_test(*cures: str) -> float:
    net = CuredNet(*cures)
    train(net)
    return measure_accuracy(net)


def one_pass(net: nn.Module) -> hv.Trace:
    images, labels = read_digits()
    with hv.record(net) as trace:
        functional.cross_entropy(net(images[:50]), labels[:50]).backward()
    return trace


def test_it_does_not_learn_and_is_well_once_everything_is_cured() -> None:
    assert train_and_test() < 0.15
    assert 0.12 < train_and_test("bend") < 0.25
    assert 0.3 < train_and_test("bend", "bias") < 0.5
    assert 0.8 < train_and_test("bend", "bias", "scale") < 0.92
    assert train_and_test(*CURES) > 0.92


def test_the_finished_cures_of_the_lesson_cure_it_together_and_none_of_them_alone() -> None:
    net = cures.Unhooked()
    cures.train_all(net)
    assert measure_accuracy(net) > 0.9
    for make, train_it in cures.ALONE.values():
        net = make()
        train_it(net)
        assert measure_accuracy(net) < 0.3


@pytest.mark.parametrize("fault", ["bend", "bias", "scale", "optimizer"])
def test_with_one_fault_left_it_learns_worse(fault: str) -> None:
    assert train_and_test(*[cure for cure in CURES if cure != fault]) < train_and_test(*CURES)


def test_the_same_seed_makes_the_same_network_and_leaves_the_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    first, second = SickNet(), SickNet()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


# -- each fault shows


def test_the_stem_gets_no_gradient_since_the_graph_is_cut() -> None:
    net = SickNet()
    trace = one_pass(net)
    assert net.stem.weight.grad is None and all(p.grad is not None for p in net.body.parameters())
    assert any("net.stem" in name for row in missing_gradients(trace) for name in row.parameters)


def test_a_hook_of_the_head_removes_the_positive_gradients() -> None:
    net = SickNet()
    (firing,) = [step for step in one_pass(net).firings if step.on == "net.head.weight"]
    assert firing.hook is not None and firing.hook.name == keep_small.__name__
    assert net.head.weight.grad is not None and net.head.weight.grad.max() <= 0


def test_most_units_of_the_relu_are_dead() -> None:
    net, outputs = SickNet(), []
    net.relu.register_forward_hook(lambda module, args, output: outputs.append(output))
    net(read_digits()[0][:50])
    assert (outputs[-1] == 0).all(0).sum() == 29


def test_gradients_shrink_on_their_way_through_the_body() -> None:
    net = SickNet()
    one_pass(net)
    norms = [p.grad.norm().item() for name, p in net.body.named_parameters() if "weight" in name and p.grad is not None]
    assert norms == sorted(norms) and norms[-1] > 1_000 * norms[0] > 0


def test_each_call_leaves_one_more_hook_behind() -> None:
    net = SickNet()
    for calls in (1, 2, 3):
        net(read_digits()[0][:2])
        assert len(hv.hooks(net.relu)) == calls
    assert len(net.seen) == 1 + 2 + 3 and all(kept.grad_fn is not None for kept in net.seen)


def test_the_images_are_nearly_black() -> None:
    assert read_digits()[0].max() / 255 < 0.1


def test_the_optimizer_does_not_hold_the_head() -> None:
    net = SickNet()
    before = net.head.weight.detach().clone()
    train(net, epochs=1)
    assert torch.equal(net.head.weight, before) and net.neck.weight.grad is not None
