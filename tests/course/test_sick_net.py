"""The network of the course does not learn; all cures together help, and each of its faults can be seen with hooks."""

import pytest
import torch
from torch import nn
from torch.nn import functional

import hookviz as hv
from hookviz.course import cures, effects
from hookviz.course.sick_net import SickNet, keep_small, measure_accuracy, read_digits, train
from tests.missing import missing_gradients


def accuracy_with(*left: str) -> float:
    return measure_accuracy(cures.train_with(left))


def one_pass(net: nn.Module) -> hv.Trace:
    images, labels = read_digits()
    with hv.record(net) as trace:
        functional.cross_entropy(net(images[:50]), labels[:50]).backward()
    return trace


def test_it_does_not_learn_and_is_well_once_everything_is_cured() -> None:
    sick = {*cures.FAULTS}
    assert accuracy_with(*sick) < 0.15
    assert 0.12 < accuracy_with(*sick - {cures.SIGMOIDS}) < 0.25
    assert 0.3 < accuracy_with(*sick - {cures.SIGMOIDS, cures.DEAD}) < 0.5
    assert 0.8 < accuracy_with(*sick - {cures.SIGMOIDS, cures.DEAD, cures.BLACK}) < 0.92 < accuracy_with()


def test_the_finished_cures_of_the_lesson_are_the_network_without_its_faults() -> None:
    images, _ = read_digits()
    finished, same = cures.Unhooked(), cures.Cured()
    assert torch.equal(finished(images[:50]), same(images[:50]))
    assert torch.equal(SickNet()(images[:50]), cures.Cured(left=cures.FAULTS)(images[:50]))
    with pytest.raises(ValueError, match="not a fault"):
        cures.Cured(left={"sigmoid"})


# -- the table of effects


def test_the_table_of_effects_holds_what_a_training_shows() -> None:
    """One seed, and the groups that take seconds; ``make effects`` measures all."""
    measured = effects.measure_effects(1, ("one fault left", "the sick network"))
    assert effects.find_differences(measured, 1) == []


def test_the_table_of_effects_has_ten_seeds_of_each_row() -> None:
    table = effects.read_effects()
    assert {group: [*rows] for group, rows in table.items() if group in effects.ACCURACIES} == {
        group: [*rows] for group, rows in effects.ACCURACIES.items()
    }
    assert [*table] == [*effects.ACCURACIES, *effects.TRAININGS]
    assert {len(values) for rows in table.values() for values in rows.values()} == {len(effects.SEEDS)}


def test_a_row_that_differs_from_the_table_is_found() -> None:
    assert effects.find_differences({"one fault left": {"none": 50.0, "sigmoids": 9.4}}, 0) == [
        "one fault left, none: 50.0, and 92.9 in the table"
    ]


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
