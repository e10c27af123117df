"""NaN and Inf are led back to the op that made them, and to its line, even where other ops of the forward are alike."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from tests.marked_lines import find_fault
from tests.requirements import needs_saved_tensors


class Attention(nn.Module):
    """Multiplies matrices in two lines, in the first of which float16 may overflow."""

    def __init__(self, size: float) -> None:
        super().__init__()
        self.size, self.query, self.key = size, nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        q, k = self.query(x) * self.size, self.key(x) * self.size
        scores = torch.matmul(q, k.transpose(-1, -2))  # fault
        weights = torch.softmax(scores / 4, dim=-1)
        return torch.matmul(weights, x)


class Recurrence(nn.Module):
    def __init__(self, gain: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8) * gain)
        self.out = nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.shape[0], 8)
        for _ in range(120):
            h = h @ self.weight + x  # fault
        y: Tensor = self.out(h)
        return y


class Length(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        length = x.square().sum(-1, keepdim=True).sqrt()
        ctx.save_for_backward(x, length)
        return length

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        x, length = ctx.saved_tensors
        return grads[0] * x / length  # fault


class Capsules(nn.Module):
    def __init__(self, least: float) -> None:
        super().__init__()
        self.least, self.inner = least, nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.inner(x) * torch.arange(len(x))[:, None] + self.least
        return Length.apply(h)  # type: ignore[no-any-return, no-untyped-call]


PROGRAMS: dict[str, tuple[type[nn.Module], float, float, Tensor, str]] = {
    "float16": (Attention, 300.0, 1.0, torch.randn(2, 6, 16).half(), "which can go beyond 65,504"),
    "recurrence": (Recurrence, 1.0, 0.1, torch.randn(4, 8), "the largest number grew from"),
    "Function": (Capsules, 0.0, 0.1, torch.randn(8, 4), "NaN begins at LengthBackward"),
}
"""Name → the module, with what makes NaN, with what does not, what it is given, and a part of what is said."""


def list_found(make: Callable[[float], nn.Module], value: float, x: Tensor) -> list[Finding]:
    torch.manual_seed(0)
    net = make(value).to(x.dtype)
    with hv.record(net) as trace:
        net(x).float().square().mean().backward()
    return [finding for finding in trace.findings.values if finding.kind in ("nan", "inf")]


@needs_saved_tensors
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_op_is_named_with_its_cause_and_its_line_and_a_healthy_twin_is_no_finding(name: str) -> None:
    make, bad, good, x, words = PROGRAMS[name]
    finding = list_found(make, bad, x)[0]
    assert words in finding.text
    owner = Length if name == "Function" else make
    assert finding.line == find_fault(__file__, f"class {owner.__name__}(")
    assert list_found(make, good, x) == []


class Twice(nn.Module):
    """Takes a logarithm in one of two lines."""

    def __init__(self, first: float) -> None:
        super().__init__()
        self.first, self.inner = first, nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.inner(x)
        if self.first:
            return (h - 9).log()
        return (h - 8).log()


def test_lines_that_are_alike_are_all_named() -> None:
    finding = list_found(Twice, 1, torch.randn(2, 4))[0]
    line = Twice.forward.__code__.co_firstlineno + 3
    assert f"One of these lines may have made LogBackward0: {line}, {line + 1}." in finding.sentence


@pytest.mark.parametrize(("scale", "is_named"), [pytest.param(65536.0, True, marks=needs_saved_tensors), (1.0, False)])
def test_a_fixed_scale_of_the_loss_is_named(scale: float, is_named: bool) -> None:
    torch.manual_seed(0)
    net = nn.Linear(4, 1).half()
    with hv.record(net) as trace:
        loss = (net(torch.randn(8, 4).half()).float() - 100).square().mean()
        (loss * scale).backward()
    found = [finding.text for finding in trace.findings.values if finding.kind == "inf"]
    assert [("The loss is multiplied by 65536" in text) for text in found] == ([True] if is_named else [])
