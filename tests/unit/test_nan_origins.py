"""Where NaN begins outside of modules, or in what a module is called with: the op, its cause and its line."""

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
    """Return numbers that a layer computed, at least one of them 0 after a ReLU."""
    torch.manual_seed(0)
    return F.relu(nn.Linear(3, 4)(torch.randn(rows, 3)))


def all_labels_are_ignored() -> None:
    F.cross_entropy(score(), torch.full((5,), -100)).backward()


def nothing_is_left_after_a_mask() -> None:
    out = score()
    out[torch.zeros(5, dtype=torch.bool)].pow(2).mean().backward()


def spread_of_one_row() -> None:
    out = score(1)
    spread = out.std(0)
    ((out - out.mean(0)) / spread).sum().backward()


def entropy_of_zero() -> None:
    p = score()
    entropy = -(p * p.log()).sum()
    entropy.backward()


def cross_entropy_by_hand() -> None:
    probabilities = torch.softmax(200 * score(50) - 100 * torch.arange(4.0), 1)
    logs = probabilities.log()
    loss = -(F.one_hot(torch.zeros(50, dtype=torch.long), 4) * logs).sum(1).mean()
    loss.backward()


def logarithm_behind_where() -> None:
    p = score()
    torch.where(p > 0, p.log(), 0.0).sum().backward()


class Pool(nn.Module):
    """A weighted mean whose mask may hide a whole row."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.out = nn.Linear(6, 1), nn.Linear(6, 2)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        pad = torch.arange(x.shape[1]) >= lengths[:, None]
        score = self.score(x).squeeze(-1).masked_fill(pad, -torch.inf)
        weight = torch.softmax(score, dim=1)
        return self.out((weight.unsqueeze(-1) * x).sum(1))  # type: ignore[no-any-return]


def mask_hides_a_row() -> None:
    Pool()(torch.randn(3, 5, 6), torch.tensor([1, 0, 5])).sum().backward()


ORIGINS: dict[Callable[[], None], tuple[str, str]] = {
    all_labels_are_ignored: ("each of them is -100, which is ignored", "F.cross_entropy("),
    nothing_is_left_after_a_mask: ("takes the mean of no numbers", "out[torch.zeros"),
    spread_of_one_row: ("divides by 1 - 1", "spread = out.std(0)"),
    entropy_of_zero: ("The Inf begins at LogBackward0", "entropy = -(p * p.log())"),
    cross_entropy_by_hand: ("Inf begins at LogBackward0", "logs = probabilities.log()"),
    logarithm_behind_where: ("0 times Inf is NaN", "torch.where("),
    mask_hides_a_row: ("hides every number of row 1, counted from 0", "weight = torch.softmax"),
}
"""Program → a part of what is said, and the begin of the line that is shown."""
FROM_SAVED = {
    all_labels_are_ignored,
    spread_of_one_row,
    mask_hides_a_row,
}
"""Programs whose cause is in what a node saved."""


def find_nan(program: Callable[[], None]) -> Finding:
    with hv.record() as trace:
        program()
    return next(row for row in trace.findings if row.kind == "nan")


@pytest.mark.filterwarnings("ignore:std")
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, marks=needs_saved_tensors if program in FROM_SAVED else (), id=program.__name__)
        for program in ORIGINS
    ],
)
def test_the_cause_and_the_line_are_said(program: Callable[[], None]) -> None:
    part, line = ORIGINS[program]
    finding = find_nan(program)
    assert part in finding.text
    assert finding.line == find_line(__file__, line)


def test_a_logarithm_of_what_is_not_negative_is_no_op_that_makes_nan() -> None:
    assert "it can be NaN" not in find_nan(cross_entropy_by_hand).text


def test_a_mean_of_some_labels_is_no_fault() -> None:
    with hv.record() as trace:
        F.cross_entropy(score(), torch.tensor([-100, 1, 2, 3, 0])).backward()
        F.mse_loss(score(), torch.ones(5, 4)).backward()
        score().std(0).sum().backward()
    assert not [row for row in trace.findings if row.kind == "nan"]
