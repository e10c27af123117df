"""``record(histograms=True)``: what is counted of gradients, outputs and weights, and what is left alone."""

import math
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim import SGD

import hookviz as hv
from hookviz.api.trace import data_of
from hookviz.autograd.tensor_samples import distribute, distribute_few, take_sample
from hookviz.trace.histogram_rows import HistogramRow, bin_limits, find_bin
from hookviz.trace.redaction import redact

EDGES = [0.0, -0.0, 1.0, -1.0, 1.25, 1e-38, 1e-45, -1e-45, 3.4e38, math.inf, -math.inf, math.nan]


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 1))


def rows_of(trace: hv.Trace, of: str) -> list[HistogramRow]:
    return [row for row in data_of(trace).histograms if row.of == of]


def train(passes: int, *, histograms: bool = True, **options: int) -> tuple[hv.Trace, list[float], torch.Tensor]:
    """Return the trace of a training, how far its first weight was moved in each step, and that weight."""
    net, moves = make_net(), []
    optimizer = SGD(net.parameters(), lr=0.1)
    with hv.record(net, histograms=histograms, **options) as trace:  # type: ignore[arg-type]
        for _ in range(passes):
            optimizer.zero_grad()
            net(torch.randn(20, 30)).square().mean().backward()
            before = net[0].weight.detach().clone()
            optimizer.step()
            moves.append((net[0].weight.detach() - before).square().mean().sqrt().item())
    return trace, moves, net[0].weight.detach()


@given(st.lists(st.one_of(st.sampled_from(EDGES), st.floats(width=32)), min_size=1, max_size=40))
@settings(deadline=None)
def test_kernels_and_python_count_alike_and_each_number_lies_in_its_bin(numbers: list[float]) -> None:
    rounded = torch.tensor(numbers)
    kernels, python = distribute(rounded), distribute_few(rounded.tolist())
    assert kernels[:2] == python[:2]
    assert Counter(dict(zip(kernels.bins, kernels.counts, strict=True))) == dict(
        zip(python.bins, python.counts, strict=True)
    )
    assert kernels[2:5] == pytest.approx(python[2:5], rel=1e-6)
    for number in filter(math.isfinite, numbers):
        low, high = bin_limits(find_bin(number))
        is_zero = low == high == 0 and abs(number) < torch.finfo(torch.float32).tiny
        assert is_zero or low <= number < high or low < number <= high < 0 or number == low


def test_gradients_outputs_and_weights_are_counted_as_they_are() -> None:
    net, x = make_net(), torch.randn(20, 30)
    with hv.record(net, histograms=True) as trace:
        net(x).square().mean().backward()
    gradient = rows_of(trace, "gradients")
    parameters = list(net.parameters())
    assert [row.total for row in gradient] == [parameter.numel() for parameter in reversed(parameters)]
    weight = next(row for row in rows_of(trace, "weights") if row.total == 1920)
    assert (weight.read, weight.nonfinite) == (1920, 0)
    assert weight.mean == pytest.approx(net[0].weight.mean().item(), rel=1e-4)
    assert weight.std == pytest.approx(net[0].weight.std(unbiased=False).item())
    assert gradient[-1].mean_abs == pytest.approx(net[0].weight.grad.abs().mean().item())  # type: ignore[union-attr]
    activation = rows_of(trace, "outputs")[1]
    assert activation.zeros == pytest.approx((net[:2](x) == 0).float().mean().item())
    assert [data_of(trace).rows[row.step].kind for row in rows_of(trace, "outputs")] == ["forward"] * 4


def test_a_gradient_is_counted_as_hooks_left_it_and_before_it_is_added() -> None:
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    with hv.record(histograms=True) as trace:
        (x * 2).sum().backward()
        (x * 3).sum().backward()
    assert [row.mean for row in rows_of(trace, "gradients")] == [20, 30]


def test_what_has_no_real_numbers_is_left_out() -> None:
    for tensor in (torch.ones(3, dtype=torch.long), torch.ones(3, dtype=torch.complex64), torch.eye(3).to_sparse()):
        assert take_sample(tensor) is None


def test_how_far_a_step_moves_each_weight_is_measured_though_passes_are_dropped() -> None:
    _plain, moves, weight = train(7, histograms=False)
    for options, wanted in (({}, moves), ({"keep": 2}, moves[-2:]), ({"every": 2}, moves[::2])):
        trace, _moves, same_weight = train(7, **options)
        found = [row.move for row in rows_of(trace, "weights") if row.total == 1920]
        assert found == pytest.approx(wanted, rel=1e-4)
        assert torch.equal(same_weight, weight)


def test_what_no_pass_follows_is_counted_at_the_end() -> None:
    net = make_net()
    with hv.record(net, histograms=True) as trace, torch.no_grad():
        for _ in range(150):  # more than wait at a time
            net(torch.randn(2, 30))
    assert len(rows_of(trace, "outputs")) == 600
    assert trace.plot("curves", of="outputs", measure="mean").table[0][:2] == ("net.0", "1")


def test_histograms_survive_a_file_and_are_left_out_with_the_values(tmp_path: Path) -> None:
    trace, _moves, _weight = train(2)
    trace.save(tmp_path / "trace.json")
    loaded = hv.load(tmp_path / "trace.json")
    assert data_of(loaded).histograms == data_of(trace).histograms
    assert redact(data_of(trace), values=False).histograms == []
