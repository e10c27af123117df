"""Where it is run what the right choice of each question says: in a cell of a lesson, or else in a function here."""

# ruff: noqa: ANN001, ANN202

import functools

import pytest
import torch
from torch import nn

from hookviz.course.transformer import SmallTransformer, as_row

CELLS = {
    "01a": "01#c19",
    "01c": "01#c32",
    "01d": "01#c52",
    "01e": "01#c07p",
    "02a": "02#c16a",
    "02b": "02#c21",
    "02c": "02#c45a",
    "02f": "02#c39a",
    "03a": "03#c17a",
    "03b": "03#c40",
    "03c": "03#c18g",
    "03e": "03#c44",
    "04a": "04#c28a",
    "04b": "04#c40",
    "04e": "04#c43",
    "05b": "05#c17a",
    "05c": "05#c34",
    "05e": "05#c43",
    "06a": "06#c30",
    "06c": "06#c45",
    "06f": "05#c21d",
    "07b": "07#c19a",
    "07c": "07#c25",
    "07d": "07#c42a",
    "08b": "08#c11",
    "08c": "05#c41f",
    "08e": "08#c42",
    "09a": "09#c16",
    "09d": "09#c13",
    "10c": "10#c56",
    "10e": "10#c31",
    "11a": "11#c02",
    "11b": "11#c24p",
    "11d": "11#c27r",
    "12b": "12#c08a",
    "12c": "12#c39",
    "13a": "05#own1",
    "13c": "13#c37",
    "14a": "14#c68",
    "14b": "14#c61b",
    "exam01": "01#c48",
    "exam02": "01#c42",
    "exam03": "07#c36",
    "exam04": "02#c21",
    "exam09": "04#c30",
    "exam10": "04#c18",
    "exam11": "05#c23",
    "exam13": "06#c16",
    "exam14": "06#c30",
    "exam15": "07#c06",
    "exam16": "07#c25",
    "exam17": "08#c11",
    "exam18": "14#c68",
    "exam19": "02#c34",
    "exam20": "09#c18",
    "exam22": "13#c32",
}
"""Key of a question → a lesson and its cell, with the checks that follow it in the solution."""


def question_10d() -> None:
    w = torch.tensor(1.0, requires_grad=True)
    seen = []
    w.register_hook(lambda grad: seen.append(w.grad))
    (w * 2).backward()
    assert seen == [None] and w.grad.item() == 2


def question_exam06() -> None:
    def hook(module, args, output):
        return output + 1

    net = nn.Identity()
    net.register_forward_hook(hook)
    net.register_forward_hook(hook)
    assert net(torch.tensor(5.0)).item() == 7


def question_exam07() -> None:
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args, kwargs: args[0], with_kwargs=True)
    with pytest.raises(RuntimeError):
        net(torch.ones(1))


def question_exam12() -> None:
    late = [lambda: n for n in (1, 2)]  # noqa: B023
    early = [functools.partial(lambda n: n, n) for n in (1, 2)]
    assert [f() for f in late] == [2, 2] and [f() for f in early] == [1, 2]


def question_exam21() -> None:
    net, kept = SmallTransformer(width=8, seed=1), []
    row_a, row_b = as_row("abcdeab"), as_row("hgfedcb")
    with net.blocks[0].register_forward_hook(lambda module, args, output: kept.append(output) or None):
        scores_a = net(row_a)
    with net.blocks[0].register_forward_hook(lambda module, args, output: kept[0]):
        assert torch.equal(net(row_b), scores_a)
    assert not torch.equal(net(row_b), scores_a)
