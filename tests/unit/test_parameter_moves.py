"""What an optimizer did to each parameter in its step: how far it moved, and what became of its gradient before."""

import pytest
import torch
from torch import nn
from torch.optim import SGD

import hookviz as hv
from hookviz.recorder.followers import training_tracker
from hookviz.trace.update_texts import list_parameter_moves


def moves_of(trace: hv.Trace) -> dict[str, str]:
    data = trace._data
    return dict(list_parameter_moves(data, data.lookup.steps_of_kinds("optimizer_step")[-1]))


def test_each_parameter_says_how_far_it_moved_and_at_which_rate() -> None:
    net = nn.Linear(2, 1)
    opt = SGD([{"params": [net.weight]}, {"params": [net.bias], "lr": 0.01}], lr=0.1)
    with hv.record(net) as trace:
        net(torch.tensor([3.0, 4.0])).backward()
        opt.step()
    assert moves_of(trace) == {
        "net.weight": "moved by 0.5 (norm), lr 0.1",
        "net.bias": "moved by 0.01 (norm), lr 0.01",
    }


def test_what_became_of_the_gradients_before_the_step_is_said() -> None:
    net = nn.Sequential(nn.Linear(2, 1), nn.Linear(1, 1), nn.Linear(1, 1))
    opt = SGD(net.parameters(), lr=1.0)
    with hv.record(net) as trace:
        net(torch.tensor([3.0, 4.0])).backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        net[1].bias.grad.zero_()
        net[2].bias.grad = None
        opt.step()
    moves, factor = moves_of(trace), 0.5 / (float(norm) + 1e-6)
    assert moves["net.0.weight"].endswith(f"lr 1, gradient clipped by × {factor:.3g}")
    assert moves["net.1.bias"] == "did not move, gradient set to 0"
    assert moves["net.2.bias"] == "did not move, has no gradient"


def test_clipping_is_said_although_a_step_pre_hook_runs_between() -> None:
    torch.manual_seed(0)
    net = nn.Linear(3, 2)
    opt = SGD(net.parameters(), lr=0.1)
    opt.register_step_pre_hook(lambda *_: None)
    with hv.record(net) as trace:
        net(torch.randn(4, 3)).square().sum().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        opt.step()
    assert all("gradient clipped by" in move for move in moves_of(trace).values())


def test_a_large_parameter_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_tracker, "MAX_NUMBERS", 3)
    net = nn.Linear(4, 1)
    opt = SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        net(torch.ones(4)).backward()
        opt.step()
    assert not moves_of(trace)
    assert trace.steps[-1].sentence == "opt (SGD) takes its step; it holds 2 parameters."
