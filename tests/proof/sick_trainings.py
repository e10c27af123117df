"""Small trainings with one fault each, and where a trace has to show it: ``python -m tests.proof.sick_trainings``."""

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, Optimizer

import hookviz as hv

Loss = Callable[[], Tensor]


class Fault(NamedTuple):
    """What a trace of a sick training has to show."""

    kind: str
    """The kind of a finding."""
    parts: tuple[str, ...]
    """What its sentence says: the place and the reason."""
    code: str = ""
    """What the line of code of the finding contains; empty if the finding is not about one line."""
    severities: tuple[str, ...] = ("error", "warning")


class SickTraining(NamedTuple):
    """A training with one fault."""

    record: Callable[[], hv.Trace]
    fault: Fault


SICK: dict[str, SickTraining] = {}
"""Name → training."""


def sick(
    name: str, kind: str, *parts: str, code: str = "", severities: Iterable[str] = ("error", "warning")
) -> Callable[[Callable[[], hv.Trace]], Callable[[], hv.Trace]]:
    """Add a training to ``SICK``, with the finding that it has to have."""

    def add(record: Callable[[], hv.Trace]) -> Callable[[], hv.Trace]:
        SICK[name] = SickTraining(record, Fault(kind, parts, code, tuple(severities)))
        return record

    return add


def train(net: nn.Module, optimizer: Optimizer, loss: Loss, steps: int = 5, *, zero: bool = True) -> hv.Trace:
    """Record a plain training loop."""
    with hv.record(net) as trace:
        for _ in range(steps):
            if zero:
                optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    return trace


def mlp(*sizes: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with activations between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers[:-1])


# -- NaN and Inf


@sick("0 · log 0", "nan", "multiplies 0 by -Inf", "logarithm of 0, which is -Inf", code="entropy =")
def zero_log_zero() -> hv.Trace:
    w = torch.zeros(3, requires_grad=True)
    with hv.record() as trace:
        p = torch.relu(w)
        entropy = p * p.log()
        loss = entropy.sum()
        loss.backward()
    return trace


@sick("square root of 0", "inf", "SqrtBackward0", "the square root has no finite slope at 0", code="distance =")
def root_of_zero() -> hv.Trace:
    x, y = torch.ones(3, requires_grad=True), torch.ones(3)
    with hv.record() as trace:
        distance = (x - y).square().sum().sqrt()
        distance.backward()
    return trace


@sick("0 / 0", "nan", "divides 0 by 0", code="share =")
def zero_by_zero() -> hv.Trace:
    w = torch.tensor([-1.0, -2.0], requires_grad=True)
    with hv.record() as trace:
        positive = w.relu()
        share = positive / positive.sum()
        loss = (share * 2).sum()
        loss.backward()
    return trace


@sick("x / 0 in a large tensor", "inf", "divides by 0", code="scaled =")
def large_by_zero() -> hv.Trace:
    x, scale = torch.ones(10, 20, requires_grad=True), torch.ones(20)
    scale[3] = 0
    with hv.record() as trace:
        scaled = x / scale
        loss = scaled.mean()
        loss.backward()
    return trace


@sick("exp overflows", "inf", "exponential of numbers above 88.7", code="e =")
def exp_overflow() -> hv.Trace:
    x = torch.tensor([1.0, 100.0], requires_grad=True)
    with hv.record() as trace:
        e = x.exp()
        loss = e.sum().log()
        loss.backward()
    return trace


@sick("learning rate too large", "nan", "net.0")
def rate_too_large() -> hv.Trace:
    net, x, y = mlp(4, 16, 1), torch.randn(8, 4), torch.randn(8, 1)
    return train(net, SGD(net.parameters(), lr=1e6), lambda: F.mse_loss(net(x), y), steps=10)


@sick("NaN in the data", "nan", "is called with NaN", code="net(x)")
def nan_in_data() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.randn(8, 4)
    x[3, 2] = math.nan
    with hv.record(net) as trace:
        out = net(x)
        out.mean().backward()
    return trace


@sick("NaN in a large weight", "nan", "net.2.weight")
def nan_in_weight() -> hv.Trace:
    net, x = mlp(8, 40, 40, 1), torch.randn(8, 8)
    with torch.no_grad():
        net[2].weight[7, 5] = math.nan
    return train(net, SGD(net.parameters(), lr=0.1), lambda: net(x).mean(), steps=1)


@sick("NaN in a frozen weight", "nan", "net.0.weight")
def nan_in_frozen_weight() -> hv.Trace:
    net, x = mlp(8, 40, 1), torch.randn(8, 8)
    with torch.no_grad():
        net[0].weight[7, 5] = math.nan
    net[0].requires_grad_(False)
    return train(net, SGD(net[2].parameters(), lr=0.1), lambda: net(x).mean(), steps=1)


@sick("label smoothing over a mask of -inf", "inf", "AddBackward0 (masked)", code="masked =")
def smoothing_over_mask() -> hv.Trace:
    logits, mask = torch.zeros(2, 4, requires_grad=True), torch.tensor([0.0, 0.0, 0.0, -math.inf])
    with hv.record() as trace:
        masked = logits + mask
        loss = F.cross_entropy(masked, torch.tensor([0, 1]), label_smoothing=0.1)
        loss.backward()
    return trace


# -- gradients that are 0, vanish or explode


@sick("dead ReLU", "zero", "ReluBackward0", "of net.1 (ReLU)")
def dead_relu() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    nn.init.constant_(net[0].bias, -100)
    return train(net, SGD(net.parameters(), lr=0.1), lambda: net(x).mean())


@sick("saturated sigmoid", "zero", "SigmoidBackward0", "of net.1 (Sigmoid)")
def saturated_sigmoid() -> hv.Trace:
    net, x = mlp(4, 8, 1, activation=nn.Sigmoid), 1e4 * torch.rand(8, 4)
    nn.init.constant_(net[0].weight, 1.0)
    return train(net, SGD(net.parameters(), lr=0.1), lambda: net(x).mean())


@sick("20 sigmoids", "vanishing", "each of", "Sigmoid leaves about")
def vanishing() -> hv.Trace:
    net, x = mlp(*[8] * 20, 1, activation=nn.Sigmoid), torch.rand(8, 8)
    return train(net, SGD(net.parameters(), lr=0.1), lambda: net(x).square().mean(), steps=2)


class Recurrent(nn.Module):
    """A recurrent net with large weights."""

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(8, 8)
        nn.init.orthogonal_(self.step.weight, gain=4)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(20):
            x = self.step(x)
        return x


@sick("exploding RNN", "exploding", "Linear makes it about")
def exploding() -> hv.Trace:
    net, x = Recurrent(), torch.randn(4, 8)
    return train(net, SGD(net.parameters(), lr=1e-30), lambda: net(x).sum(), steps=2)


@sick("loss times 0", "zero", "MulBackward0 (loss)")
def loss_times_zero() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(x).mean() * 0
            loss.backward()
            optimizer.step()
    return trace


@sick("softmax twice", "softmax_twice", "takes the softmax of the result of a softmax")
def softmax_twice() -> hv.Trace:
    net, x, y = nn.Sequential(mlp(4, 8, 3), nn.Softmax(-1)), torch.rand(8, 4), torch.zeros(8, dtype=torch.long)
    return train(net, SGD(net.parameters(), lr=0.1), lambda: F.cross_entropy(net(x), y))


# -- the training loop


@sick("zero_grad forgotten", "not_zeroed", "sgd uses the gradients of earlier steps again", "net.0")
def zero_grad_forgotten() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    sgd = SGD(net.parameters(), lr=0.01)
    with hv.record(net) as trace:
        for _ in range(5):
            net(x).mean().backward()
            sgd.step()
    return trace


@sick("learning rate 0", "lr_zero", "was 0 in 5 of 5 steps")
def rate_zero() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    return train(net, Adam(net.parameters(), lr=0.0), lambda: net(x).mean())


@sick("layer missing from the optimizer", "missing", "net.2.weight and 1 more")
def layer_missing() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    return train(net, SGD(net[0].parameters(), lr=0.1), lambda: net(x).mean())


@sick(
    "model replaced after the optimizer",
    "replaced",
    "are not the parameters of net",
    severities=["error"],
)
def model_replaced() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    net = mlp(4, 8, 1)
    return train(net, optimizer, lambda: net(x).mean())


@sick("parameters assigned after the optimizer", "replaced", "are not the parameters of net")
def parameters_assigned() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    optimizer = SGD(net.parameters(), lr=0.1)
    net.load_state_dict(mlp(4, 8, 1).state_dict(), assign=True)
    return train(net, optimizer, lambda: net(x).mean())


@sick(
    "GAN cut by detach",
    "cut",
    "No gradient reaches generator.0.weight",
    "trained holds them, but cannot train them",
    code="detach()",
)
def generator_cut() -> hv.Trace:
    generator, critic = mlp(2, 8, 4), mlp(4, 8, 1)
    trained = Adam(generator.parameters(), lr=0.01)
    with hv.record() as trace:
        for _ in range(3):
            trained.zero_grad()
            fake = generator(torch.randn(8, 2)).detach()
            (-critic(fake).mean()).backward()
            trained.step()
    return trace


@sick("every step skipped", "skipped", "All 5 steps of ")
def steps_skipped() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    sgd, scaler = SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with hv.record(net) as trace:
        for _ in range(5):
            sgd.zero_grad()
            scaler.scale(net(x).square().sum() * 1e3).backward()
            scaler.step(sgd)
            scaler.update()
    return trace


@sick("batch norm in eval mode", "eval_norm", "Trained in evaluation mode: net.1", severities=["remark"])
def eval_norm() -> hv.Trace:
    net, x = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1)), torch.rand(8, 4)
    net.eval()
    return train(net, SGD(net.parameters(), lr=0.1), lambda: net(x).mean())


@sick("frozen layer in the optimizer", "frozen", "holds net.0.weight and 1 more", severities=["remark"])
def frozen_layer() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    net[0].requires_grad_(False)
    return train(net, SGD(net.parameters(), lr=0.1), lambda: net(x).mean())


class Tied(nn.Module):
    """A language model whose embedding is also its output layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.out = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.embed(x))
        return scores


@sick("one tensor, two names", "shared", "net.embed.weight, net.out.weight", severities=["remark"])
def tied() -> hv.Trace:
    net, x = Tied(), torch.arange(8)
    return train(net, SGD(net.parameters(), lr=0.1), lambda: F.cross_entropy(net(x), x))


@sick("clipped to 0", "zeroed", "were all 0 in 5 of 5 steps")
def clipped_to_zero() -> hv.Trace:
    net, x = mlp(4, 8, 1), torch.rand(8, 4)
    sgd = SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        for _ in range(5):
            sgd.zero_grad()
            net(x).mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.0)
            sgd.step()
    return trace


def is_found(trace: hv.Trace, fault: Fault) -> bool:
    """Whether a trace has the finding of a fault, at the right place and the right line."""
    for finding in trace.findings:
        is_right = finding.kind == fault.kind and finding.severity in fault.severities
        if is_right and all(part in finding.text for part in fault.parts) and _has_code(finding, fault.code):
            return True
    return False


def _has_code(finding: hv.Finding, code: str) -> bool:
    if not code:
        return True
    if finding.line is None:
        return False
    with open(__file__, encoding="utf-8") as file:
        return code in file.read().splitlines()[finding.line - 1]


def main() -> None:
    """Print the findings of each training, and whether its fault is found."""
    for name, (record, fault) in SICK.items():
        torch.manual_seed(0)
        trace = record()
        print(f"{'found ' if is_found(trace, fault) else 'MISSED'}  {name}")
        for finding in trace.findings:
            place = f"step {finding.step}, line {finding.line} {finding.when}"
            print(f"        {finding.severity} {finding.kind} ({place}): {finding.text}")


if __name__ == "__main__":
    main()
