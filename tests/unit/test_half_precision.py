"""Half precision, autocast and GradScaler: recording changes no bit, and scaled gradients are marked as scaled."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from scenes import Net, leaf, plain, steps_of
from shown import shown_steps
from torch import nn

import hookviz as hv
from tests.proof.compare import bits


def make_scaler(scale: float = 1024.0) -> torch.amp.GradScaler:
    return torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=2)


def is_unmarked(step: Any) -> bool:
    return step.scale is None and "caled by" not in step.sentence


# -- recording does not change the run


def train(watch: Callable[..., Any]) -> list[Any]:
    """Train four steps and return all losses, gradients, parameters and scales."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 4))
    net[0].weight.register_hook(lambda grad: grad * 2)
    net[3].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    opt, scaler = torch.optim.Adam(net.parameters()), make_scaler()
    state: list[Any] = []
    with watch():
        for number in range(4):
            opt.zero_grad()
            with torch.autocast("cpu", torch.float16):
                loss = net(torch.randn(5, 8) * (1e6 if number == 2 else 1)).float().square().mean()
            scaler.scale(loss).backward()
            if number % 2:
                scaler.unscale_(opt)
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            state += [scaler.get_scale(), bits(loss), *((bits(p), bits(p.grad), p._version) for p in net.parameters())]
    return state


def test_training_under_autocast_is_recorded_bit_for_bit() -> None:
    assert train(hv.record) == train(nullcontext)


# -- scaled gradients


def test_gradients_below_a_scaled_loss_are_marked_as_scaled() -> None:
    w = leaf(3.0)
    with hv.record() as trace:
        loss = w * w
        make_scaler(65536.0).scale(loss).backward()
    seed, scales, arrives, *rest = trace.steps
    assert seed.kind == "seed" and is_unmarked(seed)
    assert scales.sentence.endswith(
        "sends 65536 to loss. A GradScaler multiplies the loss here: the gradients below are scaled by 65,536."
    )
    assert arrives.sentence == "The gradient 65536 arrives at loss. Scaled by 65,536."
    assert rest and all(step.scale == 65536 and step.sentence.endswith(" Scaled by 65,536.") for step in rest)
    assert steps_of(trace, "accumulate")[0].sentence == "w.grad is written: 393216. Scaled by 65,536."
    player = trace.player()
    assert shown_steps(player.content)[2]["sentence"] == arrives.sentence
    assert trace.notes == player.content["notes"] and "A GradScaler scaled losses" in repr(trace)


def test_unscale_adds_a_step() -> None:
    net, scaler = Net(), make_scaler()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        scaler.scale(net(leaf(1.0))).backward()
        scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
    assert [step.kind for step in trace.steps][-2:] == ["unscale", "optimizer_step"]
    (step,) = steps_of(trace, "unscale", "opt")
    assert step.sentence == "The GradScaler divides the gradients of opt by 1024: from here on they are not scaled."
    assert (plain(step.before), plain(step.after)) == (1024, 1)
    frame = shown_steps(trace.player().content)[-2]
    assert (frame["title"], frame["before"], frame["after"]) == ("the gradients of opt are unscaled", "1024", "1")


def test_a_skipped_optimizer_step_and_the_new_scale_are_reported() -> None:
    net, scaler = Net(), make_scaler()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        scaler.scale(net(leaf(float("inf")))).backward()
        scaler.step(opt)
        scaler.update()
    assert [step.sentence for step in trace.steps[-2:]] == [
        "The GradScaler divides the gradients of opt by 1024, and finds Inf or NaN among them: it will skip the step.",
        "The scale of the GradScaler goes from 1024 to 512.",
    ]
    assert not steps_of(trace, "optimizer_step") and trace.player().steps == len(trace.steps)


def test_a_disabled_scaler_marks_nothing() -> None:
    w, scaler = leaf(3.0), torch.amp.GradScaler("cpu", enabled=False)
    opt = torch.optim.SGD([w], lr=0.1)
    with hv.record() as trace:
        scaler.scale(w * w).backward()
        scaler.unscale_(opt)
        scaler.step(opt)
        scaler.update()
    assert trace._data.scales == [] and all(map(is_unmarked, trace.steps)) and not steps_of(trace, "unscale")


# -- the range of float16 as a cause


def sigmoids(dtype: torch.dtype) -> hv.Trace:
    """Train a deep net whose gradients become smaller with each layer, without a GradScaler."""
    net = nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(32, 32), nn.Sigmoid()))).to(dtype)
    return train_once(net, lambda: net(torch.randn(16, 32).to(dtype)).mean() * 1e-2)


def large(dtype: torch.dtype) -> hv.Trace:
    """Train with a loss whose gradients add up to more than float16 holds."""
    net = nn.Linear(32, 8).to(dtype)
    return train_once(net, lambda: (net(torch.randn(256, 32).to(dtype)).float() * 60).square().sum().mul(5))


def train_once(net: nn.Module, compute_loss: Callable[[], torch.Tensor]) -> hv.Trace:
    opt = torch.optim.SGD(net.parameters(), lr=1e-9)
    with hv.record(net) as trace:
        compute_loss().backward()
        opt.step()
    return trace


@pytest.mark.parametrize(
    ("program", "kind", "severity", "part"),
    [
        (sigmoids, "zero", "warning", "too small for float16"),
        (large, "inf", "error", "float16 ends at 65,504, and no GradScaler"),
    ],
)
def test_what_float16_cannot_hold_is_said_with_the_remedy(
    program: Callable[[torch.dtype], hv.Trace], kind: str, severity: str, part: str
) -> None:
    torch.manual_seed(0)
    finding = next(row for row in program(torch.float16).findings if row.kind == kind)
    assert finding.severity == severity and part in finding.text and "bfloat16" in finding.text
    assert not any(row.kind in ("zero", "inf") for row in program(torch.bfloat16).findings)


def test_an_overflow_in_the_forward_has_another_remedy_than_a_scaler() -> None:
    net = nn.Linear(4, 4).half()
    nn.init.ones_(net.weight)
    with hv.record(net) as trace:
        (net(torch.full((4, 4), 6e4).half()) * 8).sum().backward()
    finding = next(row for row in trace.findings if row.kind == "inf")
    assert "compute this in bfloat16 or float32" in finding.text and "GradScaler" not in finding.text


@pytest.mark.parametrize("divide", [torch.reciprocal, lambda x: x / x.detach()])
def test_what_is_infinite_at_0_in_each_dtype_is_not_for_another_dtype(
    divide: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    torch.manual_seed(0)
    net = nn.Linear(4, 3).half()
    with hv.record(net) as trace:
        (divide(torch.relu(net(torch.randn(5, 4).half()))).sum() * 32).backward()
    found = [row for row in trace.findings if row.kind in ("nan", "inf")]
    assert found and not any("float16" in row.text for row in found)


@pytest.mark.parametrize("is_zero", [True, False])
def test_a_weight_of_zeros_is_no_underflow(is_zero: bool) -> None:
    torch.manual_seed(0)
    body, head = nn.Linear(8, 16).half(), nn.Linear(16, 64).half()
    nn.init.constant_(head.weight, 0.0 if is_zero else 1e-3)
    nn.init.zeros_(head.bias)
    head.weight.requires_grad_(False)
    sgd = torch.optim.SGD([*body.parameters(), head.bias], lr=0.1)
    with hv.record(body, head) as trace:
        (head(body(torch.randn(2048, 8).half())) * 2e-2).mean().backward()
        sgd.step()
    zeros = [row for row in trace.findings if row.kind == "zero"]
    assert zeros and any("too small for float16" in row.text for row in zeros) != is_zero


@pytest.mark.parametrize("is_kept", [True, False])
def test_steps_that_are_all_skipped_with_one_scale_lead_to_the_line_that_makes_the_scaler(is_kept: bool) -> None:
    net = torch.nn.Linear(2, 1)
    sgd, kept = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with hv.record(net) as trace:
        for _ in range(3):
            scaler = kept if is_kept else torch.amp.GradScaler("cpu", init_scale=2.0**127)
            sgd.zero_grad()
            scaler.scale(net(torch.ones(1, 2)).square().sum() * 1e3).backward()
            scaler.step(sgd)
            scaler.update()
    [finding] = [finding for finding in trace.findings if finding.kind == "skipped"]
    assert "All 3 steps of sgd were skipped under a GradScaler" in finding.sentence
    assert ("each time, although update() makes it smaller" in finding.cause) != is_kept
