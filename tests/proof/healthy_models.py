"""Small trainings without a fault, in which at most remarks are found."""

import copy
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop
from torch.optim.lr_scheduler import LambdaLR

import hookviz as hv

STEPS = 4
MAX_REMARKS = 2

HEALTHY: dict[str, Callable[[], hv.Trace]] = {}
"""Name → the function that records the training."""


def healthy(name: str) -> Callable[[Callable[[], hv.Trace]], Callable[[], hv.Trace]]:
    """Add a training to ``HEALTHY``."""

    def add(record: Callable[[], hv.Trace]) -> Callable[[], hv.Trace]:
        HEALTHY[name] = record
        return record

    return add


def train(
    net: nn.Module,
    loss: Callable[[int], Tensor],
    optimizer: Optimizer | None = None,
    *,
    gather: int = 1,
    scale: float = 0.0,
    before: Callable[[], object] = lambda: None,
    after: Callable[[], object] = lambda: None,
) -> hv.Trace:
    """Record a training loop, by default with AdamW over all parameters, that takes a step for every few passes."""
    optimizer = AdamW(net.parameters(), lr=1e-3) if optimizer is None else optimizer
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=bool(scale))
    with hv.record(net) as trace:
        for number in range(STEPS * gather):
            scaler.scale(loss(number)).backward()
            if number % gather == gather - 1:
                before()
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                after()
    return trace


def classify(net: nn.Module, x: Tensor, optimizer: Optimizer | None = None) -> hv.Trace:
    """Train a classifier of three classes on random labels."""
    y = torch.randint(3, (len(x),))
    return train(net, lambda _: F.cross_entropy(net(x), y), optimizer)


def mlp(*sizes: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with activations between them."""
    return nn.Sequential(*(part for pair in pairwise(sizes) for part in (nn.Linear(*pair), activation())))[:-1]


# -- attention


class Attention(nn.Module):
    """Multi-head attention with a mask of -inf if it is causal."""

    def __init__(self, size: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Any:
        batch, length, size = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / (size / self.heads) ** 0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, size))


class Block(nn.Module):
    """A transformer block with the norm first."""

    def __init__(self, norm: Callable[[int], nn.Module], *, causal: bool) -> None:
        super().__init__()
        self.norm1, self.attention = norm(16), Attention(16, 2, causal=causal)
        self.norm2, self.mlp = norm(16), mlp(16, 64, 16, activation=nn.GELU)

    def forward(self, x: Tensor) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@healthy("decoder with tied weights")
def tied_decoder() -> hv.Trace:
    blocks = [Block(nn.RMSNorm, causal=True) for _ in range(2)]
    net = nn.Sequential(nn.Embedding(20, 16), *blocks, nn.RMSNorm(16), nn.Linear(16, 20, bias=False))
    net[-1].weight = net[0].weight
    tokens = torch.randint(20, (4, 9))
    return train(net, lambda _: F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()))


class LoRA(nn.Module):
    """A frozen layer with a change of low rank, whose second factor starts at 0."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.layer = nn.Linear(16, size).requires_grad_(False)
        self.a, self.b = nn.Parameter(torch.randn(2, 16) / 8), nn.Parameter(torch.zeros(size, 2))

    def forward(self, x: Tensor) -> Any:
        return self.layer(x) + x @ self.a.T @ self.b.T


@healthy("LoRA")
def lora() -> hv.Trace:
    net = nn.Sequential(LoRA(16), nn.Tanh(), LoRA(3))
    return classify(net, torch.randn(8, 16), AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2))


# -- convolutions


class Residual(nn.Module):
    """A residual block, the last norm of whose branch starts at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        nn.init.zeros_(self.branch[1].weight)

    def forward(self, x: Tensor) -> Any:
        return (x + self.branch(x)).relu()


@healthy("zero-init residual")
def zero_residual() -> hv.Trace:
    net = nn.Sequential(nn.Conv2d(3, 8, 2, 2), Residual(), Residual(), nn.Flatten(), nn.Linear(128, 3))
    return classify(net, torch.randn(4, 3, 8, 8))


# -- a recurrent net


@healthy("GRU with clipping")
def gru() -> hv.Trace:
    net, x = nn.ModuleDict({"rnn": nn.GRU(4, 16, batch_first=True), "out": nn.Linear(16, 1)}), torch.randn(8, 12, 4)
    return train(
        net,
        lambda _: F.mse_loss(net["out"](net["rnn"](x)[0][:, -1]), x.mean((1, 2))[:, None]),
        before=lambda: nn.utils.clip_grad_norm_(net.parameters(), 0.1),
    )


# -- several models, or parts of one


@healthy("GAN")
def gan() -> hv.Trace:
    generator, critic = mlp(2, 16, 4), mlp(4, 16, 1)
    of_generator, of_critic = Adam(generator.parameters(), lr=1e-3), Adam(critic.parameters(), lr=1e-3)
    with hv.record() as trace:
        for _ in range(STEPS):
            real, fake = torch.randn(8, 4), generator(torch.randn(8, 2))
            of_critic.zero_grad()
            (F.softplus(-critic(real)).mean() + F.softplus(critic(fake.detach())).mean()).backward()
            of_critic.step()
            of_generator.zero_grad()
            F.softplus(-critic(generator(torch.randn(8, 2)))).mean().backward()
            of_generator.step()
    return trace


@healthy("DQN with target network")
def dqn() -> hv.Trace:
    net = mlp(4, 16, 2)
    target, optimizer = copy.deepcopy(net), RMSprop(net.parameters(), lr=1e-3)
    with hv.record() as trace:
        for _ in range(STEPS):
            with torch.no_grad():
                goal = torch.randn(8) + 0.9 * target(torch.randn(8, 4)).max(1).values
            optimizer.zero_grad()
            F.smooth_l1_loss(net(torch.randn(8, 4)).max(1).values, goal).backward()
            optimizer.step()
            with torch.no_grad():
                for old, new in zip(target.parameters(), net.parameters(), strict=True):
                    old.lerp_(new, 0.01)
    return trace


class MoE(nn.Module):
    """A mixture of experts that asks only the best expert of each input."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 4), nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows = (chosen == index).nonzero()[:, 0]
            if len(rows):
                out = out.index_add(0, rows, expert(x[rows]) * weights[rows, None])
        return out


@healthy("mixture of experts")
def moe() -> hv.Trace:
    net = MoE()
    return train(net, lambda _: (net(torch.randn(6, 8)) - 1).square().mean())


class ResidualSigmoids(nn.Module):
    """Many saturating layers, each beside a path that carries the gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(24))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + layer(x).sigmoid() * 0.1
        return x


@healthy("deep residual net of sigmoids")
def residual_sigmoids() -> hv.Trace:
    net, x = ResidualSigmoids(), torch.randn(8, 8)
    return train(net, lambda _: net(x).square().mean())


# -- ways to train


def train_small(change: Callable[[int, Tensor], Tensor], gather: int = 1, scale: float = 0.0) -> hv.Trace:
    """Train with SGD; ``change`` is given the number of the pass and its loss."""
    net, x = mlp(4, 16, 1), torch.rand(8, 4)
    sgd = SGD(net.parameters(), lr=0.1)
    return train(net, lambda number: change(number, net(x).square().mean()), sgd, gather=gather, scale=scale)


@healthy("gradient accumulation")
def accumulation() -> hv.Trace:
    return train_small(lambda _, loss: loss / 3, gather=3)


@healthy("GradScaler whose scale settles")
def grad_scaler() -> hv.Trace:
    return train_small(lambda _, loss: loss, scale=2.0**16)


@healthy("GradScaler that skips a step")
def grad_scaler_skips() -> hv.Trace:
    return train_small(lambda number, loss: loss * 1e2 ** (number == 0), scale=2.0**127)


@healthy("bfloat16 autocast")
def autocast() -> hv.Trace:
    net, x = mlp(8, 32, 3), torch.randn(8, 8)

    def loss(_: int) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return F.cross_entropy(net(x), torch.ones(8, dtype=torch.long))

    return train(net, loss)


@healthy("warm-up from 0, with dropout")
def warm_up() -> hv.Trace:
    net, x = nn.Sequential(mlp(4, 16, 16), nn.Dropout(0.5), nn.Linear(16, 1)), torch.rand(8, 4)
    adam = AdamW(net.parameters(), lr=1e-3)
    schedule = LambdaLR(adam, lambda step: step / STEPS)
    return train(net, lambda _: net(x).square().mean(), adam, after=schedule.step)


@healthy("LBFGS")
def lbfgs() -> hv.Trace:
    net, x = mlp(4, 8, 1, activation=nn.Tanh), torch.rand(8, 4)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = (net(x) - 1).square().mean()
        loss.backward()
        return loss

    with hv.record(net) as trace:
        for _ in range(2):
            optimizer.step(closure)
    return trace
