"""A hook whose handle was overwritten goes on after ``remove``: that is found where it changes something."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings import Finding


def double(grad: Tensor) -> Tensor:
    return grad * 2


def negate(grad: Tensor) -> Tensor:
    return -grad


def scale(_module: nn.Module, grad_input: tuple[Tensor, ...], _grad_output: object) -> tuple[Tensor, ...]:
    return (grad_input[0] * 0.1,)


def look(_grad: Tensor) -> None:
    """Change nothing."""


def pass_back(net: nn.Module) -> None:
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()


def list_found(program: Callable[[nn.Sequential], None]) -> list[Finding]:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with hv.record(net) as trace:
        program(net)
    return list(trace.findings)


def overwrite(net: nn.Sequential) -> None:
    handle = net[0].weight.register_hook(double)
    handle = net[0].weight.register_hook(negate)  # overwrites
    handle.remove()  # removes
    pass_back(net)


class Holder:
    """An object that keeps a handle."""

    handle: object


def overwrite_attribute(net: nn.Sequential) -> None:
    holder = Holder()
    for layer in net:
        holder.handle = layer.register_full_backward_hook(scale)  # overwrites
    holder.handle.remove()  # type: ignore[attr-defined]  # removes
    pass_back(net)


def keep_each(net: nn.Sequential) -> None:
    handles = []
    for layer in net:
        handle = layer.register_full_backward_hook(scale)
        handles.append(handle)
    pass_back(net)
    handle.remove()
    pass_back(net)


def only_look(net: nn.Sequential) -> None:
    handle = net[0].weight.register_hook(look)
    handle = net[0].weight.register_hook(double)
    handle.remove()
    pass_back(net)


def remove_at_the_end(net: nn.Sequential) -> None:
    handle = net[0].weight.register_hook(double)
    handle = net[0].weight.register_hook(negate)
    pass_back(net)
    handle.remove()


def line_of(program: Callable[..., None], mark: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(i for i in range(program.__code__.co_firstlineno, len(lines)) if lines[i].endswith(mark)) + 1


@pytest.mark.parametrize(
    ("program", "severity", "on"),
    [(overwrite, "remark", "net.0.weight"), (overwrite_attribute, "warning", "net.0")],
)
def test_a_hook_whose_handle_was_overwritten_is_found_with_both_lines(
    program: Callable[[nn.Sequential], None], severity: str, on: str
) -> None:
    [finding] = [one for one in list_found(program) if one.kind == "overwritten"]
    assert (finding.kind, finding.severity, finding.certainty, finding.about) == (
        "overwritten", severity, "proven", "hook",
    )  # fmt: skip
    assert finding.line == line_of(program, "# overwrites") and finding.line_role == "overwrites"
    assert f"line {line_of(program, '# removes')}" in finding.sentence
    assert [hook.on for hook in finding.hooks] == [on]


@pytest.mark.parametrize("program", [keep_each, only_look, remove_at_the_end])
def test_handles_that_are_kept_or_not_needed_are_no_finding(program: Callable[[nn.Sequential], None]) -> None:
    assert "overwritten" not in [finding.kind for finding in list_found(program)]
