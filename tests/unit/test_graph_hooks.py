"""``hooks()`` lists every hook of tensors and graphs, with the dict that holds it and its position."""

from collections.abc import Sequence

import pytest
import torch
from scenes import accumulator, leaf, silent

import hookviz as hv


def describe_hooks(hooks: Sequence[hv.Hook]) -> list[tuple[str, str, str, int, int]]:
    return [(h.on, h.name, h.kept_in, h.place, h.total) for h in hooks]


def test_every_kind_of_hook_is_listed_with_its_position() -> None:
    a = leaf(2.0)
    c = a * 3
    node = accumulator(a)
    c.register_hook(silent("one"))
    c.register_hook(silent("two"))
    c.grad_fn.register_prehook(silent("three"))
    c.grad_fn.register_hook(silent("four"))
    a.register_hook(silent("five"))
    a.register_post_accumulate_grad_hook(silent("six"))
    node.register_prehook(silent("seven"))
    listed = describe_hooks(hv.hooks(c))
    assert sorted(listed) == [
        ("AccumulateGrad (a)", "seven", "pre-hooks of AccumulateGrad (a)", 0, 1),
        ("MulBackward0 (c)", "four", "hooks of MulBackward0 (c)", 0, 1),
        ("MulBackward0 (c)", "three", "pre-hooks of MulBackward0 (c)", 0, 1),
        ("a", "five", "a._backward_hooks", 0, 1),
        ("a", "six", "a._post_accumulate_grad_hooks", 0, 1),
        ("c", "one", "c._backward_hooks", 0, 2),
        ("c", "two", "c._backward_hooks", 1, 2),
    ]
    assert [row[1] for row in describe_hooks(hv.hooks(c.grad_fn))] == [row[1] for row in listed]
    line = silent("seven").__code__.co_firstlineno
    where = f"tests/scenes.py, line {line}"
    assert ("a", "five", "tensor hook", "a._backward_hooks", "1/1", where) in hv.hooks(c).texts()
    assert "five" in hv.hooks(c)._repr_html_()


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_multi_grad_hook_is_listed_on_each_of_its_tensors_as_the_users_function(mode: str) -> None:
    a, b = leaf(2.0), leaf(3.0)
    c = a * b
    a.register_hook(silent("of a alone"))
    torch.autograd.graph.register_multi_grad_hook([a, b], silent("of both"), mode=mode)
    listed = [(h.kind, *row) for h, row in zip(hv.hooks(c), describe_hooks(hv.hooks(c)), strict=True)]
    assert sorted(listed) == [
        ("multi_grad_hook", "a", "of both", "a._backward_hooks", 1, 2),
        ("multi_grad_hook", "b", "of both", "b._backward_hooks", 0, 1),
        ("tensor_hook", "a", "of a alone", "a._backward_hooks", 0, 2),
    ]


def test_an_object_without_hooks_is_refused_with_its_type() -> None:
    with pytest.raises(TypeError, match=r"takes tensors, autograd nodes, modules and optimizers.* this is a list"):
        hv.hooks(torch.ones(1), [torch.ones(1)])
