"""The sick network of the course and its cures; that each of its faults can be seen, the lessons assert."""

import pytest
import torch

from hookviz.course import cures, effects
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
    """One seed of the quickest group; lesson 09 compares others with the table, and ``make effects`` measures all."""
    measured = effects.measure_effects(1, ("the sick network",))
    assert effects.find_differences(measured, 1) == []
