"""The small transformer of lesson 13: it looks back only, its parts can be hooked, and it learns its task."""

import pytest
import torch

from hookviz.course.transformer import (
    ASKED,
    FIRST,
    LENGTH,
    SmallTransformer,
    as_row,
    as_text,
    make_rows,
    make_tiny_attention,
    measure,
    train_to_copy,
)


def test_pieces_are_copies_of_the_first_part_and_the_asked_places_lie_inside_them() -> None:
    rows, sources = make_rows(50, seed=3)
    assert rows.shape == (50, LENGTH) and sources.shape == (50, LENGTH - FIRST)
    assert torch.equal(rows[:, FIRST:], rows.gather(1, sources)) and int(sources.max()) < FIRST
    assert all(len(set(as_text(row[:FIRST]))) == FIRST for row in rows)
    inside = ASKED - FIRST
    assert torch.equal(sources[:, inside] + 1, sources[:, inside + 1])


def test_same_seed_makes_the_same_network_and_leaves_the_random_numbers_alone() -> None:
    before = torch.get_rng_state()
    one, other = SmallTransformer(seed=2), SmallTransformer(seed=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(map(torch.equal, one.parameters(), other.parameters()))
    assert not torch.equal(one.scores.weight, SmallTransformer(seed=3).scores.weight)


def test_it_looks_back_only_as_a_hook_on_the_pattern_sees() -> None:
    net, patterns = SmallTransformer(), list[torch.Tensor]()
    net.blocks[0].attention.pattern.register_forward_hook(lambda module, args, output: patterns.append(output))
    one, other = net(as_row("abcde")), net(as_row("abcfg"))
    assert torch.allclose(one[:, :3], other[:, :3], atol=1e-6)
    assert not torch.allclose(one[:, 3:], other[:, 3:], atol=1e-6)
    assert patterns[0].shape == (1, 2, 5, 5) and patterns[0].sum(-1).allclose(torch.ones(1))
    assert patterns[0].triu(1).eq(0).all()


def test_tiny_attention_looks_at_equal_letters_only() -> None:
    letters = torch.tensor([[[1.0], [-1.0], [1.0], [-1.0]]])
    assert torch.equal(make_tiny_attention()(letters), letters)


@pytest.mark.slow
def test_two_hundred_steps_teach_the_task() -> None:
    net, rows = SmallTransformer(seed=1), make_rows(200, seed=1_000_000)[0]
    assert measure(net, rows)[1] < 0.2
    train_to_copy(net)
    loss, right = measure(net, rows)
    assert loss < 0.1 and right > 0.97
