"""What findings say of optimizers: the line that they name, and nothing about the healthy twin of a program."""

import copy
import linecache
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW

import hookviz as hv

Program = Callable[[], None]


def net_of(*sizes: int) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(sizes[0], sizes[1]), nn.Tanh(), nn.Linear(sizes[1], 1))


def find(program: Program) -> list[hv.Finding]:
    """Record a program, whose objects are gone at the end, and return its findings other than remarks."""
    with hv.record() as trace:
        program()
    return [finding for finding in trace.findings if finding.is_bad]


def only(program: Program, kind: str) -> hv.Finding:
    """Return the only finding, which names the line of the program that is marked with ``# here``."""
    [finding] = find(program)
    assert finding.kind == kind, finding
    assert finding.file is not None and finding.file.endswith("test_optimizer_findings.py")
    assert linecache.getline(__file__, finding.line or 0).rstrip().endswith("# here")
    return finding


# -- moved without a gradient


def freeze(part: str) -> None:
    net = nn.Sequential(net_of(3, 4), nn.Linear(1, 1))
    if part == "module":
        net[0].requires_grad = False  # here
    for parameter in net[0].parameters() if part == "parameters" else ():
        parameter.require_grad = False  # here
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


def test_an_attribute_that_freezes_nothing_is_a_finding_and_another_one_is_none() -> None:
    finding = only(lambda: freeze("module"), "not_frozen")
    assert finding.sentence.startswith("net.0.requires_grad = False freezes nothing: net.0.0.weight and 3 more")
    assert "net.0.requires_grad_(False)" in finding.advice
    finding = only(lambda: freeze("parameters"), "not_frozen")
    assert finding.sentence.startswith("require_grad = False freezes nothing: net.0.0.weight and 3 more")
    assert find(lambda: freeze("nothing")) == []
    assert find(thaw) == []


def thaw() -> None:
    """Set an attribute that freezes nothing, freeze the module in another way, and thaw it after the first step."""
    net = nn.Sequential(net_of(3, 4), nn.Linear(1, 1))
    net[0].requires_grad = False
    optimizer = SGD(net.parameters(), lr=0.1)
    for step in range(3):
        net[0].requires_grad_(step > 0)
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


class WithOwnFlag(nn.Sequential):
    """Stops the gradient of its first part while a flag of its own is off."""

    def forward(self, x: torch.Tensor) -> Any:
        features = self[0](x)
        return self[1](features if getattr(self[0], "requires_grad", True) else features.detach())


def stop_by_a_flag() -> None:
    net = WithOwnFlag(net_of(3, 4), nn.Linear(1, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    for step in range(4):
        if step == 2:
            net[0].requires_grad = False
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


def test_an_attribute_that_the_program_reads_itself_may_freeze() -> None:
    assert find(stop_by_a_flag) == []


def train_beside_a_frozen_norm(*, evaluates: bool) -> list[hv.Finding]:
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    net[1].requires_grad_(False)
    net[1].train(not evaluates)
    optimizer = SGD([*net[0].parameters(), *net[2].parameters()], lr=0.1)
    with hv.record() as trace:
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.randn(6, 3)).square().mean().backward()
            optimizer.step()
    return list(trace.findings)


def test_a_frozen_batch_norm_in_training_mode_is_a_remark() -> None:
    (finding,) = train_beside_a_frozen_norm(evaluates=False)
    assert (finding.kind, finding.severity) == ("frozen_norm", "remark")
    assert finding.sentence.startswith("The parameters of net.1 are frozen, but it ran in training mode")
    assert "updates" not in finding.text
    assert train_beside_a_frozen_norm(evaluates=True) == []


def train_head(*, backbone: Callable[[], Any]) -> None:
    net, head = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).requires_grad_(False), nn.Linear(4, 1)
    optimizer = SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        with backbone():
            features = net(torch.randn(6, 3))
        optimizer.zero_grad()
        head(features).square().mean().backward()
        optimizer.step()


class BatchNormFrozen(nn.Module):
    """Uses its running statistics in both modes."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.norm = [nn.BatchNorm1d(count).requires_grad_(False).eval()]
        self.weight = self.norm[0].weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normalised: torch.Tensor = self.norm[0](x)
        return normalised


def test_a_norm_of_the_program_itself_is_no_batch_norm() -> None:
    net = nn.Sequential(nn.Linear(3, 4), BatchNormFrozen(4), nn.Linear(4, 1))
    optimizer = SGD([*net[0].parameters(), *net[2].parameters()], lr=0.1)
    with hv.record() as trace:
        train(net, optimizer, 2)
    assert list(trace.findings) == []


@pytest.mark.parametrize("backbone", [torch.no_grad, torch.enable_grad])
def test_a_frozen_batch_norm_is_one_without_a_graph_as_well(backbone: Callable[[], Any]) -> None:
    with hv.record() as trace:
        train_head(backbone=backbone)
    assert [finding.kind for finding in trace.findings] == ["frozen_norm"]


def clip_in_place() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        for parameter in net.parameters():
            parameter.grad.clamp_(-0.1, 0.1)
        optimizer.step()


def clip_in_vain() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        for parameter in net.parameters():
            parameter.grad.clamp(-0.1, 0.1)  # here
        optimizer.step()


class Flat:
    """The gradients of a model, with a method that clips all of them in place."""

    def __init__(self, net: nn.Module) -> None:
        self.parameters = list(net.parameters())
        self.grad = self

    def clip(self, limit: float) -> None:
        for parameter in self.parameters:
            assert parameter.grad is not None
            parameter.grad.clamp_(-limit, limit)


def clip_by_a_class(*, clips: bool = False) -> None:
    net = net_of(3, 4)
    flat, optimizer = Flat(net), SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        flat.grad.clip(0.1)
        for parameter in net.parameters() if clips else ():
            if clips:
                parameter.grad.clamp(-0.1, 0.1)
        optimizer.step()


def test_a_clipped_gradient_that_is_dropped_is_a_finding_unless_it_is_clipped_in_place() -> None:
    finding = only(clip_in_vain, "rebound")
    assert finding.sentence.startswith("parameter.grad.clamp(-0.1, 0.1) makes a new tensor")
    assert finding.advice == "Write clamp_(...), which edits it in place."
    assert find(clip_in_place) == find(clip_by_a_class) == []


def look_only(*, dry: bool = True) -> None:
    net = net_of(3, 4)
    for _ in range(2):
        net.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        if dry:
            continue
        for parameter in net.parameters():
            parameter = parameter - 0.1 * parameter.grad


def update_nothing() -> None:
    net = net_of(3, 4)
    for _ in range(2):
        net.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        for parameter in net.parameters():
            if parameter.grad is None:
                continue
            parameter = parameter - 0.1 * parameter.grad  # here


def test_an_update_that_a_condition_may_leave_out_is_not_said_to_be_in_vain() -> None:
    assert only(update_nothing, "rebound").line_role == "cause"
    assert find(look_only) == []


def train_copies(*, once: bool, hands_back: bool = False) -> None:
    """Train a copy of the model, the same in all rounds or a new one in each; the model may get its gradients."""
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)  # here
    fast = copy.deepcopy(net)
    for _ in range(2):
        optimizer.zero_grad()
        fast = fast if once else copy.deepcopy(net)
        fast(torch.randn(6, 3)).square().mean().backward()
        for own, other in zip(net.parameters(), fast.parameters(), strict=True):
            own.grad = other.grad if hands_back else None
        optimizer.step()


def test_an_optimizer_is_outdated_by_another_model_and_not_by_copies_that_serve_one_round() -> None:
    finding = only(lambda: train_copies(once=True), "replaced")
    assert "Create the optimizer with the parameters of fast" in finding.advice
    assert find(lambda: train_copies(once=True, hands_back=True)) == []
    assert find(lambda: train_copies(once=False, hands_back=True)) == []


def train_masters(*, by: str) -> None:
    """Train tensors beside the parameters of a model: scores in its pass, or copies that are written back."""
    net = net_of(3, 4)
    masters = [parameter.detach().clone().requires_grad_() for parameter in net.parameters()]
    optimizer = SGD(masters, lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net.zero_grad()
        loss = net(torch.randn(6, 3)).square().mean()
        loss = loss + sum((one - 1).square().sum() for one in masters) if by == "scores" else loss
        loss.backward()
        for own, master in zip(net.parameters(), masters, strict=True):
            master.grad = own.grad if by == "copies" else master.grad
        optimizer.step()
        for own, master in zip(net.parameters(), masters, strict=True):
            own.data.copy_(master if by == "copies" else own)


@pytest.mark.parametrize("by", ["scores", "copies"])
def test_tensors_that_are_trained_beside_the_parameters_are_not_outdated(by: str) -> None:
    assert find(lambda: train_masters(by=by)) == []


class Renewing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.layer = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scale = nn.Parameter(torch.ones(3))
        result: torch.Tensor = self.layer(x * self.scale)
        return result


def test_a_parameter_that_forward_replaces_is_to_be_made_once() -> None:
    def program() -> None:
        net = Renewing()
        optimizer = SGD(net.parameters(), lr=0.1)  # here
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(6, 3)).square().mean().backward()
            optimizer.step()

    assert only(program, "replaced").advice.startswith("Make them once, outside of forward")


def zero_by_hand(decay: float) -> None:
    net = net_of(3, 4)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1, weight_decay=decay)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        for parameter in net[0].parameters():
            torch.Tensor.zero_(parameter.grad)
        optimizer.step()  # here


def test_a_parameter_that_moves_with_a_gradient_set_to_0_is_a_finding_unless_nothing_moves_it() -> None:
    finding = only(lambda: zero_by_hand(0.1), "moved")
    assert "moves net.0.weight and 1 more in 3 of its 3 steps, although the gradient was set to 0" in finding.sentence
    assert finding.cause.startswith("The weight decay of AdamW, 0.1,")
    assert find(lambda: zero_by_hand(0.0)) == []


class Patient(SGD):
    """May add what is rounded away later."""


def train_in(dtype: torch.dtype, kind: type[SGD] = SGD) -> None:
    net = net_of(3, 4).to(dtype)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.fill_(1.0)
    optimizer = kind(net.parameters(), lr=1e-4)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.full((6, 3), 0.1, dtype=dtype)).mean().backward()
        optimizer.step()  # here


def test_steps_that_are_rounded_away_are_a_finding_and_those_of_more_digits_are_none() -> None:
    finding = only(lambda: train_in(torch.bfloat16), "unmoved")
    assert "None of the 3 steps of optimizer changes" in finding.sentence and "bfloat16" in finding.cause
    assert find(lambda: train_in(torch.float32)) == []
    assert find(lambda: train_in(torch.bfloat16, Patient)) == []


def mask_row_zero(net: nn.Sequential) -> None:
    def mask(grad: torch.Tensor) -> torch.Tensor:
        return grad * (torch.arange(len(grad)) > 0).unsqueeze(1)

    net[0].weight.register_hook(mask)


def train(net: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 4) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


def decay_moves_a_masked_row() -> None:
    net = net_of(3, 4)
    mask_row_zero(net)
    optimizer = AdamW(net.parameters(), lr=0.01, weight_decay=0.1)  # here
    train(net, optimizer)


def averages_move_a_masked_row() -> None:
    net = net_of(3, 4)
    optimizer = Adam(net.parameters(), lr=0.01)  # here
    train(net, optimizer)
    mask_row_zero(net)
    train(net, optimizer)


def masked_row_without_decay() -> None:
    net = net_of(3, 4)
    mask_row_zero(net)
    train(net, AdamW(net.parameters(), lr=0.01, weight_decay=0))


def masked_row_that_is_put_back() -> None:
    net = net_of(3, 4)
    mask_row_zero(net)
    optimizer, row = AdamW(net.parameters(), lr=0.01), net[0].weight[0].detach().clone()
    for _ in range(4):
        train(net, optimizer, 1)
        with torch.no_grad():
            net[0].weight[0] = row


def decay_moves_dead_rows() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    with torch.no_grad():
        net[0].bias[:2] = -100
    net[0].weight.register_hook(lambda grad: grad * 0.5)
    train(net, AdamW(net.parameters(), lr=0.01))


def test_a_masked_row_that_the_optimizer_moves_is_a_finding_with_the_reason() -> None:
    finding = only(decay_moves_a_masked_row, "moved")
    assert "rows 0 (of 4, counted from 0) of net.0.weight in at least 3 of its 4 steps, although" in finding.sentence
    assert finding.cause == "The weight decay of AdamW, 0.1, makes weights smaller whatever their gradient is."
    assert (finding.hooks[0].label, finding.parameters) == ("mask", ("net.0.weight",))
    assert only(averages_move_a_masked_row, "moved").cause.startswith("Adam goes on with the averages of earlier")


@pytest.mark.parametrize("program", [masked_row_without_decay, masked_row_that_is_put_back, decay_moves_dead_rows])
def test_rows_that_stay_or_have_no_gradient_of_their_own_are_no_finding(program: Program) -> None:
    assert find(program) == []


def frozen_with_gradient(to_none: bool) -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01, momentum=0.9)  # here
    train(net, optimizer)
    net[0].requires_grad_(False)
    for _ in range(3):
        optimizer.zero_grad(set_to_none=to_none)
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


def test_a_frozen_parameter_with_an_older_gradient_moves() -> None:
    finding = only(lambda: frozen_with_gradient(to_none=False), "moved")
    assert "although requires_grad is False" in finding.sentence
    assert find(lambda: frozen_with_gradient(to_none=True)) == []


@pytest.mark.parametrize("is_given", [True, False])
def test_a_gradient_that_a_pass_returned_reached_its_parameter(is_given: bool) -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)
    with hv.record() as trace:
        for step in range(6):
            optimizer.zero_grad()
            loss = net(torch.randn(6, 3)).square().mean()
            if step < 2:
                loss.backward()
            elif is_given:
                for parameter, grad in zip(net.parameters(), torch.autograd.grad(loss, net.parameters()), strict=True):
                    parameter.grad = grad.sign()
            else:
                loss.backward(inputs=[net[2].weight, net[2].bias])
            optimizer.step()
    stopped = [finding for finding in trace.findings if finding.kind == "stopped"]
    assert [finding.parameters for finding in stopped] == ([] if is_given else [("net.0.weight", "net.0.bias")])
    assert not any("belongs to the graph of" in finding.cause for finding in stopped)


def step_with_gradients_of_its_own() -> None:
    net = net_of(3, 4).requires_grad_(False)
    optimizer = Adam(net.parameters(), lr=0.01)
    for _ in range(3):
        client = copy.deepcopy(net).requires_grad_(True)
        train(client, SGD(client.parameters(), lr=0.1))
        for parameter, trained in zip(net.parameters(), client.parameters(), strict=True):
            parameter.grad = parameter - trained.detach()
        optimizer.step()


def test_a_frozen_parameter_may_move_by_a_gradient_that_no_pass_wrote() -> None:
    assert find(step_with_gradients_of_its_own) == []


def test_gradients_that_a_hook_thins_out_are_a_remark() -> None:
    def program() -> None:
        net = net_of(3, 4)
        net[0].weight.register_hook(lambda grad: grad.where(grad.abs() >= grad.abs().median(), torch.tensor(0.0)))
        train(net, Adam(net.parameters(), lr=0.01))

    with hv.record() as trace:
        program()
    assert [(finding.kind, finding.severity) for finding in trace.findings] == [("moved", "remark")]


# -- the moment of clipping and of steps


def clip_before_the_pass() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(6, 3)).square().mean()
        optimizer.zero_grad()
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)  # here
        loss.backward()
        optimizer.step()


def clip_after_the_step() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        train(net, optimizer, 1)
        nn.utils.clip_grad_value_(net.parameters(), 0.01)  # here


def clip_another_model() -> None:
    net, other = net_of(3, 4), net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        nn.utils.clip_grad_norm_(other.parameters(), 1.0)
        optimizer.step()


def clip_an_iterator() -> None:
    net = net_of(3, 4)
    optimizer, parameters = SGD(net.parameters(), lr=0.1), filter(torch.is_tensor, net.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)  # here
        optimizer.step()


def clip_what_the_program_put_into_grad() -> None:
    """The actor's gradients come from autograd.grad; a pass of the critic runs before the step that uses them."""
    actor, critic = net_of(3, 4), net_of(1, 4)
    optimizers = SGD(actor.parameters(), lr=0.1), SGD(critic.parameters(), lr=0.1)
    for _ in range(3):
        gradients = torch.autograd.grad(critic(actor(torch.randn(6, 3))).mean(), list(actor.parameters()))
        for parameter, gradient in zip(actor.parameters(), gradients, strict=True):
            parameter.grad = gradient
        nn.utils.clip_grad_norm_(actor.parameters(), 0.01)
        optimizers[1].zero_grad()
        critic(torch.randn(6, 1)).square().mean().backward()
        optimizers[1].step()
        optimizers[0].step()


def clip_in_time() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for number in range(6):
        net(torch.randn(6, 3)).square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        if number % 2:
            optimizer.step()
            nn.utils.clip_grad_norm_(net.parameters(), float("inf"))
            optimizer.zero_grad()


def test_clipping_that_no_step_uses_is_a_finding_and_its_twin_is_none() -> None:
    finding = only(clip_before_the_pass, "clips_nothing")
    assert finding.sentence.startswith("clip_grad_norm_ clipped nothing in 3 of 3 calls: it ran before the pass")
    assert only(clip_after_the_step, "clips_nothing").sentence.startswith(
        "clip_grad_value_ clipped no gradient that a step used, in 3 of 3 calls: each time it ran after the step."
    )
    assert find(clip_in_time) == find(clip_what_the_program_put_into_grad) == []
    with hv.record() as trace:
        clip_another_model()
    [finding] = trace.findings
    assert (finding.kind, finding.severity) == ("clips_nothing", "remark")
    assert finding.sentence.endswith("no parameter that it was given had a gradient.")
    finding = only(clip_an_iterator, "clips_nothing")
    assert finding.sentence == "clip_grad_norm_ was given no parameters in 2 of 3 calls: it clipped nothing."
    assert finding.advice.startswith("An iterator")


def clip_each_part() -> None:
    net, loss = net_of(3, 4), nn.MSELoss()
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss(net(torch.randn(6, 3)), torch.randn(6, 1)).backward()
        for part in (net, loss):
            nn.utils.clip_grad_norm_(list(part.parameters()), 1.0)
        optimizer.step()


def clip_a_loss() -> None:
    net, loss = net_of(3, 4), nn.MSELoss()
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss(net(torch.randn(6, 3)), torch.randn(6, 1)).backward()
        nn.utils.clip_grad_norm_(list(loss.parameters()), 1.0)
        optimizer.step()


def test_a_loss_without_parameters_that_is_clipped_is_a_remark_without_advice() -> None:
    assert find(clip_each_part) == []
    with hv.record() as trace:
        clip_a_loss()
    [finding] = trace.findings
    assert (finding.kind, finding.severity, finding.advice) == ("clips_nothing", "remark", "")
    assert finding.sentence == "clip_grad_norm_ was given no parameters in 2 of 2 calls: it clipped nothing."


def step_in_a_hook(net: nn.Module, parameters: list[nn.Parameter]) -> None:
    """Take the steps of some parameters inside the backward pass."""
    optimizers = {parameter: SGD([parameter], lr=0.1) for parameter in parameters}

    def step_now(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in parameters:
        parameter.register_post_accumulate_grad_hook(step_now)


def clip_after_a_hook() -> None:
    net = net_of(3, 4)
    step_in_a_hook(net, list(net.parameters()))
    for _ in range(3):
        net(torch.randn(6, 3)).square().mean().backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)  # here


def clip_the_rest() -> None:
    """The hook takes the step of the first layer, which is the last leaf of each pass; the rest is clipped in time."""
    net = nn.Sequential(net_of(3, 4), net_of(1, 2))
    step_in_a_hook(net, list(net[0].parameters()))
    optimizer = SGD(net[1].parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        nn.utils.clip_grad_norm_(net[1].parameters(), 0.01)
        optimizer.step()


def test_clipping_after_the_steps_of_a_hook_names_the_hook_and_its_twin_is_no_finding() -> None:
    finding = only(clip_after_a_hook, "clips_nothing")
    assert finding.sentence == "clip_grad_norm_ clipped nothing in 3 of 3 calls."
    assert finding.cause.startswith("step_now (") and "inside the backward pass" in finding.cause
    assert find(clip_the_rest) == []


def scaled(*, unscale: bool = True, step_by_scaler: bool = True, by_hand: bool = False, by_data: bool = False) -> None:
    net = net_of(3, 4)
    optimizer, scaler = SGD(net.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(6, 3)).square().mean()).backward()
        for parameter in net.parameters() if by_data else ():
            assert parameter.grad is not None
            parameter.grad.data.div_(1024.0)
        if not step_by_scaler:
            optimizer.step()  # here
            continue
        for parameter in net.parameters() if by_hand else ():
            torch.Tensor.div_(parameter.grad, 1024.0)
        if unscale:
            scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # here
        if by_hand:
            optimizer.step()
            continue
        scaler.step(optimizer)
        scaler.update()


def test_clipping_and_steps_with_scaled_gradients_are_findings_and_the_twin_is_none() -> None:
    finding = only(lambda: scaled(unscale=False), "clips_scaled")
    assert "with a scale of 1024, its limit of 1 is one of 0.0009766" in finding.sentence
    finding = only(lambda: scaled(step_by_scaler=False), "scaled_step")
    assert "took 3 of 3 steps with gradients that were still scaled: they were 1024 times" in finding.sentence
    assert find(scaled) == []
    assert find(lambda: scaled(unscale=False, by_hand=True)) == []
    assert find(lambda: scaled(step_by_scaler=False, by_data=True)) == []


def scale_a_part_of_the_loss() -> None:
    net = net_of(3, 4)
    optimizer, scaler = SGD(net.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(torch.randn(6, 3)).square().mean()
        (scaler.scale(loss) + net[2].weight.square().sum() + net[0].weight.square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()


def unscale_only(loss_scale: float = 1.0, init_scale: float = 1024.0) -> None:
    net = net_of(3, 4)
    optimizer, scaler = SGD(net.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=init_scale)
    for _ in range(2):
        optimizer.zero_grad()
        loss = net(torch.randn(6, 3)).square().mean()
        scaler.scale(loss)
        loss.backward(torch.tensor(loss_scale))  # here
        scaler.step(optimizer)
        scaler.update()


def test_a_scaled_loss_that_is_dropped_is_a_finding_unless_the_pass_is_scaled_by_hand() -> None:
    finding = only(unscale_only, "unscaled_loss")
    assert "divides the gradients of optimizer by its scale, 1024, but no loss was multiplied" in finding.sentence
    assert find(lambda: unscale_only(1024.0)) == find(lambda: unscale_only(init_scale=1.0)) == []
    assert find(scale_a_part_of_the_loss) == []


def clip_by_hand(*, divides: bool, by_value: bool) -> None:
    """Clip gradients with the scale, or after they were divided by it."""
    net = net_of(3, 4)
    optimizer, scaler = SGD(net.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(6, 3)).square().mean()).backward()
        for parameter in net.parameters() if divides else ():
            torch.Tensor.div_(parameter.grad, 1024.0)
        clip = nn.utils.clip_grad_value_ if by_value else nn.utils.clip_grad_norm_
        clip(net.parameters(), 0.5)  # here
        torch.Tensor.div_(net[0].weight.grad, 1.0)  # the step uses what was edited, so it is not said to be scaled
        optimizer.step()


def clip_the_model_without_a_scale(*, both: bool) -> None:
    """Scale the loss of one of two models, or of both; clip the gradients of the first."""
    first, second = net_of(3, 4), net_of(3, 4)
    optimizers = SGD(first.parameters(), lr=0.01), SGD(second.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(3):
        first.zero_grad()
        second.zero_grad()
        loss = first(torch.randn(6, 3)).square().mean()
        (scaler.scale(loss) if both else loss).backward()
        scaler.scale(second(torch.randn(6, 3)).square().mean()).backward()
        nn.utils.clip_grad_norm_(first.parameters(), 0.5)  # here
        for optimizer in optimizers if both else ():
            scaler.step(optimizer)
        if not both:
            optimizers[0].step()
            scaler.step(optimizers[1])
        scaler.update()


def test_gradients_that_carry_no_scale_when_they_are_clipped_are_no_finding() -> None:
    only(lambda: clip_by_hand(divides=False, by_value=False), "clips_scaled")
    for by_value in (False, True):
        assert find(lambda by_value=by_value: clip_by_hand(divides=True, by_value=by_value)) == []
    only(lambda: clip_the_model_without_a_scale(both=True), "clips_scaled")
    assert find(lambda: clip_the_model_without_a_scale(both=False)) == []


SCALED_LIMIT = """import torch

def main():
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    net.weight.register_hook(lambda grad: grad.clamp(-0.005 * LIMIT, 0.005 * LIMIT))
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(6, 3)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()
"""


def test_a_limit_that_has_the_scale_is_no_finding(tmp_path: Path) -> None:
    found = find(read_main(tmp_path / "limit.py", SCALED_LIMIT.replace("LIMIT", "10.0")))
    assert [finding.kind for finding in found] == ["clips_scaled"]
    assert find(read_main(tmp_path / "scaled_limit.py", SCALED_LIMIT.replace("LIMIT", "scaler.get_scale()"))) == []


def clip_in_hooks(*, times: float = 1.0) -> None:
    net = net_of(3, 4)
    for parameter in net.parameters():
        parameter.register_hook(lambda grad: grad.clamp(-0.05 * times, 0.05 * times))  # here
    optimizer, scaler = SGD(net.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(6, 3)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()


def take_signs() -> None:
    net = net_of(3, 4)
    net[0].weight.register_hook(torch.Tensor.sign)
    net[2].weight.register_hook(lambda grad: grad.sign())
    optimizer, scaler = SGD(net.parameters(), lr=0.01), torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(6, 3)).square().mean()).backward()
        scaler.step(optimizer)
        scaler.update()


def test_hooks_that_clip_scaled_gradients_are_a_finding_unless_their_limit_has_the_scale() -> None:
    (finding,) = [finding for finding in find(clip_in_hooks) if finding.severity != "remark"]
    assert finding.kind == "clips_scaled" and len(finding.hooks) > 1
    assert "with a scale of 1024, its limit of 0.05 is one of 4.883e-05" in finding.sentence
    assert find(lambda: clip_in_hooks(times=1024.0)) == []
    assert find(take_signs) == []


def never_step(clear: bool, factor: float = 1.0) -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        if clear:
            optimizer.zero_grad()
        (net(torch.randn(6, 3)).square().mean() * factor).backward()  # here


def test_an_optimizer_without_a_step_is_a_finding_unless_gradients_are_gathered() -> None:
    finding = only(lambda: never_step(clear=True), "never_stepped")
    assert finding.sentence.startswith(
        "optimizer took no step, although 3 passes wrote gradients of net.0.weight and 3"
    )
    assert find(lambda: never_step(clear=False)) == []
    assert [finding.kind for finding in find(lambda: never_step(clear=True, factor=float("nan")))] == ["nan"]


def update_by_hand(*, moves: bool) -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()  # here
        for parameter in net.parameters() if moves else ():
            assert parameter.grad is not None
            parameter.data -= 0.1 * parameter.grad


BEGINS_LATER = """import torch

def main():
    net, judge = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
    first, second = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (net, judge))
    for step in range(3):
        first.zero_grad()
        second.zero_grad()
        judge(net(torch.ones(2, 3))).sum().backward()
        first.step()
        if step > 10:
            second.step()
"""


def test_an_optimizer_whose_step_is_left_out_or_taken_by_hand_is_no_alarm(tmp_path: Path) -> None:
    assert only(lambda: update_by_hand(moves=False), "never_stepped").severity == "warning"
    assert find(lambda: update_by_hand(moves=True)) == []
    finding = run_file(tmp_path / "later.py", BEGINS_LATER)
    assert (finding.kind, finding.severity, finding.advice) == ("never_stepped", "remark", "")
    finding = run_file(tmp_path / "swapped.py", BEGINS_LATER.replace("second.step()", "first.step()"))
    assert (finding.kind, finding.severity) == ("never_stepped", "warning")


def step_before_the_pass() -> None:
    net = nn.Linear(3, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(6, 3)).square().mean()
        optimizer.step()  # here
        optimizer.zero_grad()
        loss.backward()


def a_first_step_that_quiets_a_scheduler() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    optimizer.step()
    train(net, optimizer)


def a_first_step_and_a_rest() -> None:
    """Take a first step for nothing, then one for each two passes; the last pass is a rest that no step uses."""
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    optimizer.step()
    for number in range(5):
        net(torch.randn(6, 3)).square().mean().backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()


def test_a_step_before_the_pass_is_a_finding_and_a_first_step_for_nothing_is_none() -> None:
    assert only(step_before_the_pass, "step_first").severity == "warning"
    assert find(a_first_step_that_quiets_a_scheduler) == find(a_first_step_and_a_rest) == []


def clear_before_the_step_of_the_next_round() -> None:
    net = nn.Linear(3, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        loss = net(torch.randn(6, 3)).square().mean()
        optimizer.zero_grad()  # here
        optimizer.step()
        loss.backward()


def test_gradients_cleared_by_the_next_round_have_the_line_that_clears_them() -> None:
    assert (
        "in each round, step() runs before backward()" in only(clear_before_the_step_of_the_next_round, "cleared").text
    )


# -- lines


def forget_zero_grad() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)
    for _ in range(3):
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()  # here


def made_without_a_rate() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.0)  # here
    train(net, optimizer)


def keep_a_part(factor: float) -> None:
    """Keep a part of each gradient for the next step, as momentum does; 1.0 keeps all of it."""
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)
    for _ in range(3):
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()  # here
        for parameter in net.parameters():
            torch.Tensor.mul_(parameter.grad, factor)


def begin_with_a_prior() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)
    for _ in range(3):
        for parameter in net.parameters():
            parameter.grad = 0.1 * parameter.detach()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


def thaw_later(*, clears: bool) -> None:
    """Give the optimizer the first layer after two rounds, in which its gradients are not cleared."""
    net = net_of(3, 4)
    optimizer = SGD(net[2].parameters(), lr=0.01)
    for number in range(5):
        if number == 2:
            optimizer.add_param_group({"params": net[0].parameters()})
        if clears or number < 3:
            optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()  # here


def test_gradients_that_add_up_have_the_line_of_the_step() -> None:
    assert only(forget_zero_grad, "not_zeroed").line_role == "update"
    assert only(lambda: keep_a_part(1.0), "not_zeroed").line_role == "update"
    assert only(lambda: thaw_later(clears=False), "not_zeroed").line_role == "update"


def test_gradients_that_the_program_itself_puts_into_grad_do_not_add_up() -> None:
    assert find(lambda: keep_a_part(0.9)) == find(begin_with_a_prior) == find(lambda: thaw_later(clears=True)) == []


def test_a_learning_rate_of_0_has_the_line_that_made_it_so(tmp_path: Path) -> None:
    finding = only(made_without_a_rate, "lr_zero")
    assert (finding.certainty, finding.cause) == ("proven", "It was 0 when the optimizer was made.")
    finding = run_file(tmp_path / "warm.py", WARM_UP)
    assert (finding.kind, finding.line, finding.line_role, finding.certainty) == ("lr_zero", 8, "rate", "likely")
    assert finding.cause.startswith("It was 0.1 when the optimizer was made.")
    groups = WARM_UP.replace("net.parameters(), lr=0.1", GROUPS).replace('group["lr"]', "rate")
    finding = run_file(tmp_path / "groups.py", groups)
    assert (finding.kind, finding.line, finding.line_role, finding.certainty) == ("lr_zero", 7, "makes", "proven")


@pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler")
def test_a_scheduler_that_makes_the_learning_rate_0_has_the_line_of_its_step(tmp_path: Path) -> None:
    finding = run_file(tmp_path / "late.py", SCHEDULED)
    assert (finding.line, finding.line_role, finding.certainty) == (11, "rate", "likely")
    assert "only" not in finding.cause and "first rate" not in finding.cause
    first = SCHEDULED.replace("        scheduler.step()\n", "").replace(
        "step in range(3):", "step in range(3):\n        scheduler.step()"
    )
    finding = run_file(tmp_path / "first.py", first)
    assert finding.line == 8 and finding.cause.endswith("no step uses the first rate.")
    both = SCHEDULED.replace("    for step", '    optimizer.param_groups[0]["lr"] = 0.2\n    for step')
    assert run_file(tmp_path / "both.py", both).cause.endswith("something set it to 0 afterwards.")


@pytest.mark.filterwarnings("ignore:Detected call of .lr_scheduler")
@pytest.mark.parametrize("name", ["body", "head"])
def test_a_scheduler_sets_the_rate_of_its_own_optimizer(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    main = read_main(path, TWO_OPTIMIZERS.replace("SCHEDULED", name))
    with hv.record() as trace:
        main()
    [finding] = [one for one in trace.findings if one.sentence.startswith("The learning rate of body was 0")]
    assert ("A scheduler sets it" in finding.cause) == (name == "body")


TWO_OPTIMIZERS = """import torch

def main():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    body, head = (torch.optim.SGD(part.parameters(), lr=0.1) for part in net)
    scheduler = torch.optim.lr_scheduler.LambdaLR(SCHEDULED, lambda step: float(step < 2))
    for step in range(3):
        body.zero_grad()
        head.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        if step == 2:
            body.param_groups[0].update(lr=0.0)
        body.step()
        head.step()
        scheduler.step()
"""


def read_main(path: Path, text: str) -> Program:
    """Return the ``main`` of a program in a file of its own."""
    path.write_text(text, encoding="utf-8")
    namespace: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), namespace)
    main: Program = namespace["main"]
    return main


def run_file(path: Path, text: str) -> hv.Finding:
    """Run the ``main`` of a program in a file of its own, and return its only finding."""
    main = read_main(path, text)
    with hv.record() as trace:
        main()
    [finding] = trace.findings
    return finding


REPLACED = """import torch
from torch import nn

def main():
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    loss = nn.CrossEntropyLoss()
    loss.weight = torch.tensor([1.0, 2.0])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss(net(torch.randn(2, 3)), torch.tensor([0, 1])).backward()
        optimizer.step()
        if step == 0:
            REPLACE
"""


def test_the_weight_of_another_object_is_not_the_one_that_was_replaced(tmp_path: Path) -> None:
    own = REPLACED.replace("REPLACE\n", "net[1].weight = nn.Parameter(torch.randn(2, 4))\n")
    assert "own.py, line 14 assigns new ones." in run_file(tmp_path / "own.py", own).cause
    other = REPLACED.replace("REPLACE\n", "setattr(net[1], 'weight', nn.Parameter(torch.randn(2, 4)))\n")
    assert "assigns" not in run_file(tmp_path / "other.py", other).text


DISTILLER = """import torch
from torch import nn

class Distiller:
    def __init__(self):
        self.student = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        self.teacher = nn.Linear(3, 2).requires_grad_(False)
        self.teacher.eval()
        self.student[1].train(not True)

    def step(self, optimizer):
        optimizer.zero_grad()
        x = torch.randn(4, 3)
        nn.functional.mse_loss(self.student(x), self.teacher(x)).backward()
        optimizer.step()

def main():
    distiller = Distiller()
    optimizer = torch.optim.SGD(distiller.student.parameters(), lr=0.1)
    for _ in range(2):
        distiller.step(optimizer)
"""


def test_only_the_line_that_evaluates_the_model_itself_is_named(tmp_path: Path) -> None:
    finding = run_file(tmp_path / "teacher.py", DISTILLER)
    assert (finding.kind, finding.line) == ("eval_norm", None)
    finding = run_file(
        tmp_path / "student.py", DISTILLER.replace("self.student[1].train(not True)", "self.student.eval()")
    )
    assert (finding.kind, finding.line) == ("eval_norm", 9)


GROUPS = """
        [
            {"params": net.weight, "lr": 0.0},
            {"params": net.bias},
        ],
        lr=0.1,
    """
WARM_UP = """import torch

def main():
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * (step // 10)
        optimizer.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
"""


SCHEDULED = """import torch

def main():
    net = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: float(step < 2))
    for step in range(3):
        optimizer.zero_grad()
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        scheduler.step()
"""


# -- parameters that came after the optimizer


def new_head() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)  # here
    net[2] = nn.Linear(4, 2)
    for _ in range(4):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()


def new_head_somewhere_else() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)  # here
    net[2] = nn.Linear(4, 2)
    train(net, optimizer)


def new_head_in_the_middle() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)  # here
    train(net, optimizer)
    net[2] = nn.Linear(4, 2)
    train(net, optimizer)


def new_head_for_a_new_optimizer() -> None:
    net = net_of(3, 4)
    train(net, SGD(net.parameters(), lr=0.01))
    net[2] = nn.Linear(4, 2)
    train(net, SGD(net.parameters(), lr=0.01))


def one_more_layer() -> None:
    net = net_of(3, 4)
    optimizer = SGD(net.parameters(), lr=0.01)  # here
    net.add_module("3", nn.Linear(1, 1))
    train(net, optimizer)


def a_head_beside_tensors_of_no_module() -> None:
    net = net_of(3, 4)
    scale, shift = torch.ones(1, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
    optimizer = SGD([*net[0].parameters(), scale, shift], lr=0.01)  # here
    for _ in range(3):
        optimizer.zero_grad()
        (net(torch.randn(6, 3)) * scale + shift).square().mean().backward()
        optimizer.step()


def test_an_optimizer_that_holds_what_was_replaced_has_the_line_that_made_it() -> None:
    finding = only(new_head, "replaced")
    assert (finding.severity, finding.certainty) == ("warning", "likely")
    assert finding.parameters == ("net.2.weight", "net.2.bias")
    only(new_head_somewhere_else, "missing")
    finding = only(new_head_in_the_middle, "replaced")
    assert finding.certainty == "proven" and "optimizer holds tensors that were replaced" in finding.sentence
    assert find(new_head_for_a_new_optimizer) == []
    only(a_head_beside_tensors_of_no_module, "missing")
    finding = only(one_more_layer, "missing")
    assert finding.cause == "optimizer, which holds other parameters of net, was made without them."


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.shift = nn.Linear(3, 2), nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.body(x) + self.shift
        return result


def train_a_part(*, moves: str, slow: bool = False) -> None:
    """Train a model without a parameter that has a gradient: the program may move it, or an optimizer later."""
    net, unused = Shifted(), torch.zeros(2, requires_grad=True)
    later = SGD([net.shift], lr=0.1) if slow else None
    optimizer = SGD([*net.body.parameters(), unused], lr=0.01)  # here
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(6, 3)).square().mean().backward()
        optimizer.step()
        if moves == "by hand":
            net.shift.data.add_(net.shift.grad, alpha=-0.1)  # type: ignore[arg-type]
    assert later is None or later.param_groups


def test_what_the_program_moves_or_another_optimizer_holds_is_not_forgotten() -> None:
    finding = only(lambda: train_a_part(moves="nothing"), "missing")
    assert "Their gradients are computed, and their numbers stayed the same." in finding.sentence
    assert find(lambda: train_a_part(moves="by hand")) == []
    assert find(lambda: train_a_part(moves="nothing", slow=True)) == []


def test_the_cause_names_what_the_optimizer_holds() -> None:
    def program() -> None:
        encoder, head = nn.Linear(3, 4), nn.Linear(4, 1)
        optimizer = SGD(head.parameters(), lr=0.01)
        for _ in range(3):
            encoder.zero_grad()
            optimizer.zero_grad()
            head(encoder(torch.randn(6, 3)).tanh()).square().mean().backward()
            optimizer.step()

    with hv.record() as trace:
        program()
    [finding] = trace.findings
    assert finding.cause == "optimizer, whose parameters get gradients from the same passes, was made without them."


class Grid(nn.Module):
    """A physics-informed net: it is called at points of its own, and asks for the gradient there."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.points = net_of(1, 4), torch.linspace(0, 1, 5).reshape(-1, 1).requires_grad_()

    def forward(self, start: torch.Tensor, *, asks: bool) -> torch.Tensor:
        u = self.net(self.points)
        (slope,) = torch.autograd.grad(u.sum(), self.points, create_graph=True) if asks else (self.points,)
        return (slope + u).square().mean() + (self.net(start) - 1).square().mean()


@pytest.mark.parametrize("asks", [True, False])
def test_a_tensor_for_which_a_gradient_is_asked_is_no_forgotten_parameter(asks: bool) -> None:
    def program() -> None:
        grid = Grid()
        optimizer = SGD(grid.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            grid(torch.zeros(1, 1), asks=asks).backward()
            optimizer.step()

    assert [finding.kind for finding in find(program)] == ([] if asks else ["missing"])


@pytest.mark.parametrize("program", [decay_moves_a_masked_row, clip_before_the_pass, new_head, made_without_a_rate])
def test_findings_are_the_same_in_a_loaded_file(program: Program, tmp_path: Path) -> None:
    with hv.record() as trace:
        program()
    trace.save(tmp_path / "trace.json")
    assert list(hv.load(tmp_path / "trace.json").findings) == list(trace.findings)


# -- a step inside a hook


def test_a_step_inside_a_hook_is_said_to_be_there() -> None:
    w = nn.Parameter(torch.ones(2))
    optimizer = SGD([w], lr=0.1)

    def step_now(_: torch.Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()

    w.register_post_accumulate_grad_hook(step_now)
    with hv.record() as trace:
        (w * 2).sum().backward()
    step = next(step for step in trace.steps if step.kind == "optimizer_step")
    assert step.sentence.startswith("step_now on w lets optimizer (SGD) take its step")
    assert "optimizer in step_now on w" in trace.text(width=200)
    assert list(trace.findings) == []


# -- parameters that need no gradient


class Evolving(torch.optim.Optimizer):
    """Moves its parameters without a gradient; by 0, it leaves them as they are."""

    def __init__(self, parameters: Any, by: float) -> None:
        super().__init__(parameters, {"by": by})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(torch.ones_like(parameter), alpha=group["by"])


class Hard(nn.Module):
    """A part through which no gradient gets, and a part behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.part, self.head = nn.Linear(3, 3), nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.part(x).round().detach())
        return result


def evolve(kind: str, by: float) -> list[hv.Finding]:
    """Train a head by gradients, and the part in front of it, or another model, by evolution."""
    net, other = Hard(), nn.Linear(3, 1)
    net.part.requires_grad_(kind == "cut")
    evolution = Evolving(other.parameters() if kind == "uncalled" else net.part.parameters(), by)
    optimizer = SGD(net.head.parameters(), lr=0.01)
    with hv.record() as trace:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(6, 3)).square().mean().backward()
            optimizer.step()
            evolution.step()
    return list(trace.findings)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("frozen", "evolution holds net.part.weight and 1 more, which do not require a gradient: its steps leave"),
        ("uncalled", "evolution took 3 steps, and none of what it holds had a gradient at any of them: it changes"),
    ],
)
def test_what_an_optimizer_moves_without_a_gradient_is_not_said_to_stay(kind: str, sentence: str) -> None:
    [finding] = evolve(kind, 0.0)
    assert finding.sentence.startswith(sentence)
    assert evolve(kind, 0.1) == []


def test_a_cut_in_front_of_what_needs_no_gradient_is_a_remark() -> None:
    [finding] = evolve("cut", 0.0)
    assert finding.severity == "warning"
    assert "evolution holds them, but cannot train them without a gradient." in finding.cause
    [finding] = evolve("cut", 0.1)
    assert finding.severity == "remark" and "evolution" not in finding.cause


@pytest.mark.parametrize("by", [0.0, 0.1])
def test_an_optimizer_that_asks_for_gradients_itself_trains_without_those_of_a_pass(by: float) -> None:
    net = nn.Linear(3, 1)
    evolution = Evolving(net.parameters(), by)
    with hv.record() as trace:
        for _ in range(3):
            torch.autograd.grad(net(torch.randn(6, 3)).square().mean(), list(net.parameters()))
            evolution.step()
    text = "evolution holds net.weight and 1 more, but no gradient reached them before any of its steps: they are not"
    assert [finding.sentence.startswith(text) for finding in trace.findings] == ([] if by else [True])


@pytest.mark.parametrize("way", ["", "in place", "data"])
def test_a_part_that_follows_another_one_between_the_steps_is_cut_off_on_purpose(way: str) -> None:
    net = Hard()
    optimizer = SGD(net.parameters(), lr=0.01)
    with hv.record() as trace:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.randn(6, 3)).square().mean().backward()
            optimizer.step()
            for own in net.part.parameters() if way else ():
                target = own.detach() if way == "in place" else own.data
                target.mul_(0.9)
    [finding] = trace.findings
    assert (finding.kind, finding.severity) == ("cut", "remark" if way else "warning")


def test_of_parameters_that_are_not_measured_it_is_not_said_that_they_stay() -> None:
    net = nn.Sequential(*(nn.Linear(3, 3) for _ in range(6)), nn.Linear(3, 1))
    net[:6].requires_grad_(False)
    with hv.record() as trace:
        train(net, SGD(net.parameters(), lr=0.01))
    [finding] = trace.findings
    assert finding.sentence == "optimizer holds net.0.weight and 11 more, which do not require a gradient."


@pytest.mark.parametrize("kind", [torch.optim.Rprop, SGD])
def test_a_rate_of_0_is_a_finding_unless_the_optimizer_has_step_sizes_of_its_own(kind: Any) -> None:
    net = net_of(3, 4)
    optimizer = kind(net.parameters(), lr=0.01)
    with hv.record() as trace:
        train(net, optimizer, 2)
        optimizer.param_groups[0]["lr"] = 0.0
        train(net, optimizer, 2)
    text = "The learning rate of optimizer was 0 in 2 of 4 steps: these steps change no parameter."
    assert [finding.sentence for finding in trace.findings] == ([text] if kind is SGD else [])
