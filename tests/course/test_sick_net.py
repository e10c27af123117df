"""The sick network of the course and its cures; that each of its faults can be seen, the lessons assert."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from hookviz.course import cures, effects, long_training
from hookviz.course.sick_net import SickNet, read_digits


def test_the_same_seed_makes_the_same_network_and_leaves_the_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    first, second = SickNet(), SickNet()
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_finished_cures_of_the_lesson_are_the_network_without_its_faults() -> None:
    images = read_digits()[0][:50]
    assert torch.equal(cures.Unhooked()(images), cures.Cured()(images))
    assert torch.equal(SickNet()(images), cures.Cured(left=cures.FAULTS)(images))
    with pytest.raises(ValueError, match="not a fault"):
        cures.Cured(left={"sigmoid"})


# -- the table of effects


def test_the_table_of_effects_holds_what_a_training_shows() -> None:
    """One seed, and the groups that take seconds; ``make effects`` measures all."""
    measured = effects.measure_effects(1, ("one fault left", "the sick network"))
    assert effects.find_differences(measured, 1) == []


def test_the_table_of_effects_has_ten_seeds_of_each_row_and_a_row_that_differs_is_found() -> None:
    table = effects.read_effects()
    assert {group: [*rows] for group, rows in table.items() if group in effects.ACCURACIES} == {
        group: [*rows] for group, rows in effects.ACCURACIES.items()
    }
    assert [*table] == [*effects.ACCURACIES, *effects.TRAININGS]
    assert {len(values) for rows in table.values() for values in rows.values()} == {len(effects.SEEDS)}
    assert effects.find_differences({"one fault left": {"none": 50.0, "sigmoids": 9.4}}, 0) == [
        "one fault left, none: 50.0, and 92.9 in the table"
    ]


def test_each_training_of_thirty_epochs_keeps_its_lowest_loss() -> None:
    trainings = {group: rows for group, rows in effects.read_effects().items() if group.startswith("30 epochs")}
    assert [*trainings] == [
        "30 epochs",
        *(f"30 epochs with {kind}" for kind in ("weight decay", "a penalty", "dropout")),
    ]
    for rows in trainings.values():
        assert [*rows] == ["best epoch", "lowest validation loss", "last validation loss"]
        assert all(1 <= epoch <= 30 for epoch in rows["best epoch"])
        losses = zip(rows["lowest validation loss"], rows["last validation loss"], strict=True)
        assert all(0 < lowest <= last for lowest, last in losses)


def test_the_penalty_has_the_gradient_of_a_sum_of_absolute_values() -> None:
    images, labels = (part[:50] for part in read_digits())
    plain, penalised = cures.Unhooked(), cures.Unhooked()
    outputs: list[torch.Tensor] = []
    plain.relu.register_forward_hook(lambda module, args, output: outputs.append(output))
    loss = functional.cross_entropy(plain(images), labels)
    (loss + 0.5 * outputs[0].abs().sum(1).mean()).backward()
    effects.add_penalty(penalised, rate=0.5)
    functional.cross_entropy(penalised(images), labels).backward()
    for expected, parameter in zip(plain.parameters(), penalised.parameters(), strict=True):
        assert torch.allclose(parameter.grad, expected.grad, atol=1e-5)


def test_dropout_is_on_in_an_epoch_of_training_and_off_when_the_loss_is_measured() -> None:
    net = cures.Unhooked()
    effects.add_dropout(net)
    modes: list[bool] = []
    net.relu[1].register_forward_pre_hook(lambda module, args: modes.append(module.training))
    examples = tuple(part[:50] for part in read_digits())
    long_training.loss_on(net, *examples)
    long_training.train_epoch(net, torch.optim.SGD(net.parameters(), lr=0.02), examples, epoch=0)
    assert modes == [False, True] and isinstance(net.relu[1], nn.Dropout)
