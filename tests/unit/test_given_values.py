"""NaN and Inf that a forward was given: in which input, and that no op of its graph made them."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from tests.marked_lines import find_line
from tests.requirements import needs_saved_tensors


def score(rows: int = 5) -> torch.Tensor:
    """Return finite numbers that a layer computed."""
    return nn.Linear(3, 4)(torch.randn(rows, 3))  # type: ignore[no-any-return]


def with_nan(*shape: int) -> torch.Tensor:
    """Return random numbers, the first of which is NaN, as in a column of data."""
    data = torch.randn(*shape)
    data.view(-1)[0] = torch.nan
    return data


def data_holds_it() -> None:
    nn.Linear(2, 2)(torch.tensor([[1.0, torch.nan]])).sum().backward()


def target_holds_it() -> None:
    F.mse_loss(score(), with_nan(5, 4)).backward()


def factor_holds_it() -> None:
    (score(50) * with_nan(50, 4)).sum().backward()


def subtracted_data_holds_it() -> None:
    net = nn.Linear(4, 1)
    error = net(torch.randn(5, 4)) - with_nan(5, 1)
    error.pow(2).mean().backward()


def factor_is_infinite() -> None:
    factor = torch.ones(5, 4)
    factor[:] = torch.inf
    (torch.relu(score() - 100) * factor).sum().backward()


GIVEN: dict[Callable[[], None], tuple[str, str]] = {
    data_holds_it: (
        "input holds NaN or Inf in 1 of its 2 numbers. These are in row 0 and column 1",
        "nn.Linear(2, 2)(",
    ),
    target_holds_it: ("enters the graph at MseLossBackward0: its input target held it", "F.mse_loss(score(), with"),
    factor_holds_it: ("its input other held it, and does not require grad", "(score(50) * with_nan"),
    subtracted_data_holds_it: ("so its other input held it", "error = net("),
    factor_is_infinite: ("Its input other held the Inf", "(torch.relu(score() - 100)"),
}
"""Program → a part of what is said, and the begin of the line that is shown."""
FROM_SAVED = {target_holds_it, factor_holds_it, factor_is_infinite}
"""Programs whose cause is in what a node saved."""


def find_nan(program: Callable[[], None]) -> Finding:
    with hv.record() as trace:
        program()
    return next(row for row in trace.findings if row.kind in ("nan", "inf"))


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, marks=needs_saved_tensors if program in FROM_SAVED else (), id=program.__name__)
        for program in GIVEN
    ],
)
def test_the_input_and_the_line_are_said(program: Callable[[], None]) -> None:
    part, line = GIVEN[program]
    finding = find_nan(program)
    assert part in finding.text
    assert finding.line == find_line(__file__, line)


@needs_saved_tensors
def test_what_the_forward_was_given_is_proven_and_what_a_frozen_part_made_of_it_is_open() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x).sub(100).log())  # type: ignore[no-any-return]

    assert find_nan(data_holds_it).certainty == find_nan(factor_holds_it).certainty == "proven"
    assert find_nan(lambda: Frozen()(torch.randn(5, 4)).sum().backward()).certainty == "open"


def test_nan_that_the_program_masks_is_a_remark_and_what_is_said_of_it_is_true() -> None:
    def mask_the_input() -> None:
        class Masked(nn.Linear):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return super().forward(torch.nan_to_num(x))

        Masked(4, 1)(with_nan(5, 4)).sum().backward()

    def mask_the_result() -> None:
        data = with_nan(5, 4)
        total = score() + data
        total[~data.isnan()].sum().backward()

    given, added = find_nan(mask_the_input), find_nan(mask_the_result)
    assert given.severity == added.severity == "remark"
    assert "(Masked) is called with NaN. x holds NaN or Inf in 1 of its 20 numbers" in given.sentence
    assert "its input with a graph was finite, so its other input held it" in added.sentence
    with hv.record() as trace:
        data, weight = with_nan(5, 4), torch.ones(4, requires_grad=True)
        (weight * torch.where(data.isnan(), 0.0, data)).sum().backward()
    assert not trace.findings
