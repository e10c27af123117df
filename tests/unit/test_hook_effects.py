"""What a hook did is said with a verb: for every way to change a gradient, and for hooks that changed nothing."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.hook_effects import HookEffect, HookEffects
from hookviz.api.trace import data_of
from tests.requirements import warns_of_early_hook

GRADIENT = torch.tensor([[1.0, -2.0], [3.0, 4.0], [5.0, 0.5]])


def effects_of(trace: hv.Trace) -> list[HookEffect]:
    data = data_of(trace)
    effects = HookEffects(data)
    return [effects.describe(step) for step in data.firings]


def effect_of(hook: Callable[[Tensor], Any], gradient: Tensor = GRADIENT) -> HookEffect:
    """Return what ``hook`` did to ``gradient``."""
    x = torch.zeros_like(gradient, requires_grad=True)
    y = x * 1
    y.register_hook(hook)
    with hv.record() as trace:
        y.backward(gradient)
    (effect,) = effects_of(trace)
    return effect


@pytest.mark.parametrize(
    ("hook", "headline", "short"),
    [
        (lambda grad: grad * 5, " multiplied the gradient by 5", "× 5"),
        (lambda grad: grad * 0, " zeroed the gradient", "zeroed"),
        (lambda grad: grad.clamp(-1, 1), " clipped the gradient to -1 … 1", "clipped"),
        (lambda grad: grad + 2, " added 2 to the gradient", "+ 2"),
        (lambda grad: grad * torch.tensor([[1.0], [0.0], [1.0]]), " zeroed 1 of 3 rows", "1 of 3"),
        (lambda grad: grad * torch.tensor([[1.0], [2.0], [1.0]]), " changed 1 of 3 rows", "1 of 3"),
        (lambda grad: grad / 0, " put Inf into the gradient", "Inf"),
        (lambda grad: grad.sign() + grad.square(), " changed the gradient", "changed"),
    ],
)
def test_what_changed_is_said_with_a_verb(hook: Callable[[Tensor], Any], headline: str, short: str) -> None:
    effect = effect_of(hook)
    assert (effect.changed, effect.short) == (True, short) and effect.headline.endswith(headline)


def test_a_hook_that_changes_nothing_looked_or_returned_an_equal_tensor() -> None:
    looked, copied = effect_of(lambda grad: None), effect_of(lambda grad: grad.clone())
    assert not looked.changed and looked.headline.endswith(" only looked at the gradient")
    assert not copied.changed and copied.headline.endswith(" wrote or returned equal numbers: nothing changed")
    large = effect_of(lambda grad: grad.clone(), torch.arange(100.0))
    assert not large.changed and large.headline.endswith("nothing seems to have changed")  # only statistics are known


def test_of_a_large_gradient_the_statistics_show_a_factor_and_a_limit() -> None:
    large = torch.linspace(-3, 4, 100)
    assert effect_of(lambda grad: grad * 0.5, large).short == "× 0.5"
    assert effect_of(lambda grad: grad.clamp(-1, 1), large).short == "clipped"


@pytest.mark.parametrize("hook", [lambda grad: grad * 3, lambda grad: grad + 2, lambda grad: grad.clamp(min=3)])
def test_of_equal_numbers_no_factor_sum_or_limit_is_claimed(hook: Callable[[Tensor], Any]) -> None:
    effect = effect_of(hook, torch.ones(2))
    assert effect.headline.endswith(" changed each number of the gradient from 1 to 3") and effect.short == "1 → 3"


def test_one_number_goes_from_one_value_to_another() -> None:
    assert effect_of(lambda grad: grad + 2, torch.tensor(4.0)).headline.endswith(" changed the gradient from 4 to 6")


def test_an_edit_in_place_names_the_gradient_that_it_changes_too() -> None:
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    c, d = a * 1, b * 1
    d.register_hook(lambda grad: grad.mul_(3))
    with hv.record() as trace:
        (c + d).backward(torch.tensor([1.0, 2.0]))
    (effect,) = effects_of(trace)
    assert effect.headline.endswith("edited the gradient in place: × 3 (c's gradient changes too)")


def test_a_module_hook_without_grad_input_looked_at_grad_output() -> None:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with hv.record(layer) as trace, warns_of_early_hook():
        layer(torch.ones(1, 2)).sum().backward()
    (effect,) = effects_of(trace)
    assert effect.headline.endswith("only looked at grad_output: grad_input is None")


def test_the_contents_count_what_all_calls_of_hooks_did() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
    net[0].weight.register_hook(lambda grad: None)
    with hv.record(net) as trace:
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    (run,) = trace.content()["runs"]
    assert run["summary"] == ["1 of 2 hook calls changed a gradient", "1 only looked"]
    assert [trace.steps[step].kind for step in run["changing"]] == ["full_backward_hook"]


def test_a_single_call_is_not_counted_as_one_of_one() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    a.register_hook(lambda grad: grad * 2)
    with hv.record() as trace:
        (a * 3).backward()
    (run,) = trace.content()["runs"]
    assert run["summary"] == ["1 hook call changed a gradient"]
