"""What a sentence says that a hook did to a gradient: only what its numbers or statistics prove."""

from collections.abc import Callable

import pytest
import torch

import hookviz as hv


def sentence_of(hook: Callable[[torch.Tensor], torch.Tensor], *shape: int) -> str:
    torch.manual_seed(0)
    x = torch.randn(*shape, requires_grad=True)
    x.register_hook(hook)
    with hv.record() as trace:
        (x * torch.randn(*shape)).sum().backward()
    return trace.firings[0].sentence


def zero_rows(grad: torch.Tensor) -> torch.Tensor:
    kept = grad.clone()
    kept[1:3] = 0
    return kept


def change_row(grad: torch.Tensor) -> torch.Tensor:
    kept = grad.clone()
    kept[0] += 1
    return kept


@pytest.mark.parametrize(
    ("hook", "shape", "said"),
    [
        (lambda grad: grad * 0.1, (4, 3), "Each number was multiplied by 0.1."),
        (torch.neg, (40, 30), "Its minimum, maximum, mean and norm were all multiplied by -1."),
        (zero_rows, (4, 3), "Rows 1–2 of 4, counted from 0, are 0 now; the others are as they were."),
        (change_row, (4, 3), "Rows 0 of 4, counted from 0, changed; the others are as they were."),
        (torch.clone, (4, 3), "All numbers are the same as before."),
    ],
)
def test_what_a_hook_did_is_said(hook: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int], said: str) -> None:
    assert sentence_of(hook, *shape).endswith(f". {said}")


@pytest.mark.parametrize("hook", [torch.zeros_like, torch.relu, lambda grad: grad + 1, lambda grad: grad * grad])
def test_what_is_no_multiple_is_said_to_be_none(hook: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for shape in ((4, 3), (40, 30)):
        assert "multiplied" not in sentence_of(hook, *shape)
    assert "multiplied" not in sentence_of(lambda grad: grad + 2, 1)
