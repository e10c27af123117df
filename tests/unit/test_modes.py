"""A model that is trained in evaluation mode is found where a dropout shows it, and a dropout that knows no mode."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD

import hookviz as hv
from hookviz.analysis.findings import Finding

KINDS = ("eval_dropout", "always_drops")


def make_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 1))


def take_step(net: nn.Module, optimizer: SGD) -> None:
    optimizer.zero_grad()
    net(torch.rand(8, 4)).square().mean().backward()
    optimizer.step()


def list_found(program: Callable[[], None]) -> list[Finding]:
    with hv.record() as trace:
        program()
    assert not any(finding.is_bad for finding in trace.findings)
    return [finding for finding in trace.findings if finding.kind in KINDS]


def train_after_evaluation() -> None:
    net = make_net()
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        take_step(net, optimizer)
        net.eval()  # fault
        with torch.no_grad():
            net(torch.rand(8, 4))


def train_again_after_evaluation() -> None:
    net = make_net()
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net.train()
        take_step(net, optimizer)
        net.eval()
        net(torch.rand(8, 4))  # with a graph, which no pass uses


class Dropping(nn.Module):
    """A net with a functional dropout; subclasses tell it the mode, or not."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(F.dropout(self.inner(x), 0.5))  # type: ignore[no-any-return]  # fault


class Telling(Dropping):
    def forward(self, x: Tensor) -> Tensor:
        return self.outer(F.dropout(self.inner(x), 0.5, training=self.training))  # type: ignore[no-any-return]


class Asking(Dropping):
    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.hide(self.inner(x), drop=self.training))  # type: ignore[no-any-return]

    def hide(self, hidden: Tensor, *, drop: bool) -> Tensor:
        if drop:
            hidden = F.dropout(hidden, 0.5)
        return hidden


def run(kind: type[nn.Module]) -> Callable[[], None]:
    def program() -> None:
        net = kind()
        take_step(net, SGD(net.parameters(), lr=0.1))
        net.eval()
        with torch.no_grad():
            net(torch.rand(8, 4))

    return program


def line_of_fault(first_line: int) -> int:
    """Return the first line marked as a fault from a line of this file on."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if number > first_line and line.endswith("# fault"))


def test_a_dropout_in_evaluation_mode_in_a_training_is_a_remark_with_the_line_of_eval() -> None:
    [finding] = list_found(train_after_evaluation)
    assert (finding.kind, finding.severity, finding.about) == ("eval_dropout", "remark", "training")
    assert "net.2 dropped nothing" in finding.sentence and "1 pass in training mode" in finding.cause
    assert finding.passes == (1, 2)


def test_a_functional_dropout_in_an_evaluation_is_a_remark_with_its_line() -> None:
    [finding] = list_found(run(Dropping))
    assert (finding.kind, finding.severity) == ("always_drops", "remark")
    assert finding.line == line_of_fault(Dropping.__init__.__code__.co_firstlineno)


# -- batch norms


def train_evaluated(*, tracks: bool = True, validates_only: bool = False) -> hv.Trace:
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, track_running_stats=tracks), nn.Linear(8, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    with hv.record() as trace:
        for _ in range(2):
            net.train(validates_only)
            take_step(net, optimizer)
            net.eval()
            with torch.no_grad():
                net(torch.rand(8, 4))
    return trace


def test_a_batch_norm_that_passes_go_through_in_evaluation_mode_is_a_remark() -> None:
    [finding] = train_evaluated().findings
    assert (finding.kind, finding.severity) == ("eval_norm", "remark")
    assert finding.sentence.startswith("Trained in evaluation mode: net.1.")
    assert list(train_evaluated(validates_only=True).findings) == list(train_evaluated(tracks=False).findings) == []


def train_towards_a_clean_output() -> None:
    net = make_net()
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        x = torch.rand(8, 4)
        net.eval()
        clean = net(x)
        net.train()
        optimizer.zero_grad()
        F.mse_loss(net(x), clean).backward()
        optimizer.step()


HEALTHY = {
    "a target in evaluation mode": train_towards_a_clean_output,
    "train() is called again": train_again_after_evaluation,
    "the mode is told": run(Telling),
    "a helper is told": run(Asking),
}


@pytest.mark.parametrize("program", HEALTHY.values(), ids=HEALTHY)
def test_modes_that_are_right_are_no_finding(program: Callable[[], None]) -> None:
    assert list_found(program) == []
