"""``draw`` shows the graphs of several outputs in one picture and, on request, what their nodes saved."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from scenes import leaf
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

import hookviz as hv
from tests.requirements import needs_saved_tensors

SPACE = "\N{NO-BREAK SPACE}"


def words(figure: hv.Figure, css_class: str) -> list[str]:
    found = re.findall(rf'<text[^>]*class="{css_class}"[^>]*>([^<]*)</text>', figure.svg())
    return [text.replace(SPACE, " ").replace("&#x27;", "'") for text in found]


def saved_rows(figure: hv.Figure) -> list[str]:
    """The rows of saved tensors, each as ``attribute: what it is``."""
    rows = re.findall(r'class="hv-saved">.*?<text[^>]*>([^<]*)</text><text[^>]*>([^<]*)</text>', figure.svg())
    return sorted(f"{name}: {what.replace(SPACE, ' ').strip()}" for name, what in rows)


# -- several outputs


def test_two_outputs_share_one_picture_and_their_leaf() -> None:
    x = leaf(2.0)
    loss, penalty = x * 3, x * x
    assert sorted(words(hv.draw(loss, penalty), "hv-name")) == ["loss", "penalty", "x"]


@dataclass
class Output:
    logits: torch.Tensor
    mask: torch.Tensor


def test_tensors_in_what_a_model_returns_are_drawn_and_named_unless_they_have_no_history() -> None:
    x = leaf(2.0)

    def model() -> dict[str, Any]:
        return {"logits": x * 3, "hidden": [x * 4], "mask": torch.ones(1), "step": 3}

    result = Output(x * 3, torch.ones(1))
    for figure, names in (
        (hv.draw(model()), ["output['hidden'][0]", "output['logits']", "x"]),
        (hv.draw((x * 3, x * 4)), ["output[0]", "output[1]", "x"]),
        (hv.draw(result), ["result.logits", "x"]),
    ):
        assert sorted(words(figure, "hv-name")) == names


def test_an_output_that_cannot_be_drawn_is_refused_with_its_place() -> None:
    with pytest.raises(TypeError, match="a list, tuple or dict of such tensors; this is a Linear"):
        hv.draw(nn.Linear(1, 1))  # type: ignore[call-overload]
    with pytest.raises(ValueError, match=r"Argument 2 of draw\(\) has no history.*requires_grad=True"):
        hv.draw(leaf(2.0) * 3, torch.ones(1))


# -- what nodes saved


@needs_saved_tensors
def test_saved_tensors_are_named_as_the_users_variables() -> None:
    net, x = nn.Linear(2, 3), torch.ones(5, 2, requires_grad=True)
    hidden = net(x)
    loss = (hidden.tanh().exp() * 2).sum()
    assert saved_rows(hv.draw(loss, saved=True)) == [
        "_saved_mat1: x (5, 2)",
        "_saved_mat2: view of net.weight (2, 3)",
        "_saved_other: = 2",
        "_saved_result: its own result (5, 3)",
        "_saved_result: its own result (5, 3)",
    ]
    assert saved_rows(hv.draw(loss)) == []


@needs_saved_tensors
def test_a_saved_tensor_without_a_name_says_which_box_made_it() -> None:
    a, index = leaf(2.0), torch.tensor([0])
    loss = (a * 3 * a).reshape(1)[index]
    figure = hv.draw(loss, saved=True)
    assert f"_saved_self from MulBackward0 #1{SPACE}= 6" in figure.digraph.source
    assert saved_rows(figure) == [
        "_saved_indices[0]: index = [0]",
        "_saved_other: = 3",
        "_saved_other: a = 2",
        "_saved_self: from MulBackward0 #1 = 6",
    ]


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        result = x**3
        ctx.save_for_backward(x, result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        x, _result = ctx.saved_tensors
        return grad * 3 * x**2  # type: ignore[no-any-return]


@needs_saved_tensors
def test_what_a_function_of_the_user_saved_is_shown_and_what_backward_cannot_use_any_more_says_why() -> None:
    x, factor = leaf(2.0), torch.tensor(3.0)
    y = Cube.apply(x)  # type: ignore[no-untyped-call]
    assert saved_rows(hv.draw(y, saved=True)) == ["saved_tensors[0]: x = 2", "saved_tensors[1]: y = 8"]
    first = (x * factor).exp()
    first.backward()
    figure = hv.draw(first, Cube.apply(first), saved=True)  # type: ignore[no-untyped-call]
    assert saved_rows(figure) == [
        "_saved_other: freed",
        "_saved_result: freed",
        "saved_tensors[0]: first = 403.4",
        "saved_tensors[1]: its own result = 6.566e+07",
    ]
    second = x * factor
    factor.add_(1)
    assert saved_rows(hv.draw(second, saved=True)) == ["_saved_other: changed in place since: backward raises"]


class Noted(torch.Tensor):
    """Runs code of the user's at each operation, on the tensor that it wraps."""

    wrapped: torch.Tensor
    calls: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls: "type[Noted]", inner: torch.Tensor) -> "Noted":
        wrapper: Noted = torch.Tensor._make_wrapper_subclass(cls, inner.shape)
        wrapper.wrapped = inner
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(str(function))
        return function(*(arg.wrapped if isinstance(arg, Noted) else arg for arg in args), **(kwargs or {}))


@needs_saved_tensors
def test_no_code_of_the_user_runs_to_read_what_was_saved() -> None:
    x = leaf(2.0)
    unpacked: list[torch.Tensor] = []

    def unpack(packed: torch.Tensor) -> torch.Tensor:
        unpacked.append(packed)
        return packed

    with saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x.exp()
    y = y * Noted(torch.ones(()))
    before = len(Noted.calls)
    rows = saved_rows(hv.draw(y, saved=True))
    assert "_saved_result: packed: unpack unpacks it" in rows
    assert "_saved_other: not read: its class is yours" in rows
    assert unpacked == [] and len(Noted.calls) == before
