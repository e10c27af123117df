"""Small trainings without a fault, in which at most remarks are found: ``python -m tests.proof.healthy_models``."""

import copy
import warnings
from collections.abc import Callable

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


def train(net: nn.Module, loss: Callable[[], Tensor], optimizer: Optimizer | None = None) -> hv.Trace:
    """Record a plain training loop, by default with AdamW over all parameters."""
    optimizer = AdamW(net.parameters(), lr=1e-3) if optimizer is None else optimizer
    with hv.record(net) as trace:
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()
    return trace


def classify(net: nn.Module, x: Tensor, classes: int) -> hv.Trace:
    """Train a classifier on random labels."""
    y = torch.randint(classes, (len(x),))
    return train(net, lambda: F.cross_entropy(net(x), y))


# -- attention


class Attention(nn.Module):
    """Multi-head attention with a mask of -inf if it is causal."""

    def __init__(self, size: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, size = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / (size / self.heads) ** 0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        mixed: Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, size))
        return mixed


class Block(nn.Module):
    """A transformer block with the norm first."""

    def __init__(self, size: int, *, causal: bool = False, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.norm1, self.attention = norm(size), Attention(size, 2, causal=causal)
        self.norm2 = norm(size)
        self.mlp = nn.Sequential(nn.Linear(size, 4 * size), nn.GELU(), nn.Linear(4 * size, size))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        mixed: Tensor = x + self.mlp(self.norm2(x))
        return mixed


class ViT(nn.Module):
    """A vision transformer with a class token and positions that start at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, 16)), nn.Parameter(torch.zeros(1, 5, 16))
        self.blocks, self.norm, self.head = nn.Sequential(Block(16), Block(16)), nn.LayerNorm(16), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        patches = self.patches(x).flatten(2).mT
        x = torch.cat([self.token.expand(len(x), -1, -1), patches], 1) + self.positions
        scores: Tensor = self.head(self.norm(self.blocks(x))[:, 0])
        return scores


@healthy("ViT block")
def vit() -> hv.Trace:
    return classify(ViT(), torch.randn(4, 3, 8, 8), 3)


class Decoder(nn.Module):
    """A language model: causal blocks, and an output layer that shares the weight of the embedding."""

    def __init__(self, *, tied: bool, norm: Callable[[int], nn.Module] = nn.LayerNorm) -> None:
        super().__init__()
        self.embed, self.blocks = (
            nn.Embedding(20, 16),
            nn.Sequential(*(Block(16, causal=True, norm=norm) for _ in range(2))),
        )
        self.norm, self.out = norm(16), nn.Linear(16, 20, bias=False)
        if tied:
            self.out.weight = self.embed.weight

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.out(self.norm(self.blocks(self.embed(tokens))))
        return scores


def train_decoder(net: nn.Module) -> hv.Trace:
    tokens = torch.randint(20, (4, 9))
    return train(net, lambda: F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()))


@healthy("Llama-like decoder")
def llama() -> hv.Trace:
    return train_decoder(Decoder(tied=False, norm=nn.RMSNorm))


@healthy("GPT with tied weights")
def tied_decoder() -> hv.Trace:
    return train_decoder(Decoder(tied=True))


@healthy("BERT-like encoder")
def bert() -> hv.Trace:
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    net = nn.Sequential(nn.Embedding(20, 16, padding_idx=0), nn.TransformerEncoder(layer, 2), nn.Linear(16, 20))
    tokens = torch.randint(1, 20, (4, 8))
    tokens[:, -2:] = 0
    return train(net, lambda: F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten(), ignore_index=0))


class LoRA(nn.Module):
    """A frozen layer with a change of low rank, whose second factor starts at 0."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(2, layer.in_features) / 8)
        self.b = nn.Parameter(torch.zeros(layer.out_features, 2))

    def forward(self, x: Tensor) -> Tensor:
        changed: Tensor = self.layer(x) + x @ self.a.T @ self.b.T
        return changed


@healthy("LoRA")
def lora() -> hv.Trace:
    net = nn.Sequential(LoRA(nn.Linear(16, 16)), nn.Tanh(), LoRA(nn.Linear(16, 3)))
    x, y = torch.randn(8, 16), torch.randint(3, (8,))
    trained = [p for p in net.parameters() if p.requires_grad]
    return train(net, lambda: F.cross_entropy(net(x), y), AdamW(trained, lr=1e-2))


# -- convolutions


class Residual(nn.Module):
    """A residual block; with ``zero`` the last norm of its branch starts at 0."""

    def __init__(self, size: int, *, zero: bool = False) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(size, size, 3, padding=1, bias=False), nn.BatchNorm2d(size)
        self.conv2, self.norm2 = nn.Conv2d(size, size, 3, padding=1, bias=False), nn.BatchNorm2d(size)
        if zero:
            nn.init.zeros_(self.norm2.weight)

    def forward(self, x: Tensor) -> Tensor:
        branch = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        joined: Tensor = (x + branch).relu()
        return joined


def train_residual(*, zero: bool) -> hv.Trace:
    blocks = [Residual(8, zero=zero) for _ in range(3)]
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    return classify(net, torch.randn(4, 3, 8, 8), 3)


@healthy("batch norm CNN")
def cnn() -> hv.Trace:
    return train_residual(zero=False)


@healthy("zero-init residual")
def zero_residual() -> hv.Trace:
    return train_residual(zero=True)


class ConvNeXt(nn.Module):
    """A ConvNeXt block, whose branch starts at a scale of 1e-6."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.depthwise, self.norm = nn.Conv2d(size, size, 7, padding=3, groups=size), nn.LayerNorm(size)
        self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.scale = nn.Parameter(torch.full((size,), 1e-6))

    def forward(self, x: Tensor) -> Tensor:
        branch = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        branch = self.scale * self.narrow(F.gelu(self.wide(branch)))
        joined: Tensor = x + branch.permute(0, 3, 1, 2)
        return joined


@healthy("ConvNeXt block")
def convnext() -> hv.Trace:
    net = nn.Sequential(nn.Conv2d(3, 8, 2, 2), ConvNeXt(8), ConvNeXt(8), nn.Flatten(), nn.Linear(128, 3))
    return classify(net, torch.randn(4, 3, 8, 8), 3)


class UNet(nn.Module):
    """Down, up, and a connection past both."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.up, self.last = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x).relu()
        up = self.up(self.down(first).relu()).relu()
        made: Tensor = self.last(torch.cat([first, up], 1))
        return made


@healthy("U-Net")
def unet() -> hv.Trace:
    net, x = UNet(), torch.rand(2, 1, 8, 8)
    return train(net, lambda: F.binary_cross_entropy_with_logits(net(x), (x > 0.5).float()))


@healthy("group norm")
def group_norm() -> hv.Trace:
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), nn.SiLU(), nn.Flatten(), nn.Linear(288, 3))
    return classify(net, torch.randn(4, 3, 8, 8), 3)


@healthy("frozen backbone")
def frozen_backbone() -> hv.Trace:
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()).requires_grad_(False)
    net = nn.Sequential(backbone, nn.Linear(288, 3))
    backbone.eval()
    x, y = torch.randn(4, 3, 8, 8), torch.randint(3, (4,))
    return train(net, lambda: F.cross_entropy(net(x), y), SGD(net[1].parameters(), lr=0.1, momentum=0.9))


# -- recurrent nets


class Recurrent(nn.Module):
    """A recurrent net with a layer on its last output."""

    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.rnn, self.out = kind(4, 16, batch_first=True), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> Tensor:
        value: Tensor = self.out(self.rnn(x)[0][:, -1])
        return value


def train_recurrent(kind: type[nn.RNNBase]) -> hv.Trace:
    net, x = Recurrent(kind), torch.randn(8, 12, 4)
    return train(net, lambda: F.mse_loss(net(x), x.mean((1, 2))[:, None]))


@healthy("LSTM")
def lstm() -> hv.Trace:
    return train_recurrent(nn.LSTM)


@healthy("GRU with clipping")
def gru() -> hv.Trace:
    net, x = Recurrent(nn.GRU), torch.randn(8, 12, 4)
    optimizer = Adam(net.parameters(), lr=1e-3)
    with hv.record(net) as trace:
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=False)
            F.mse_loss(net(x), x.mean((1, 2))[:, None]).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            optimizer.step()
    return trace


# -- several models or optimizers


def mlp(*sizes: int, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    """Linear layers with activations between them."""
    layers: list[nn.Module] = []
    for index, before in enumerate(sizes[:-1]):
        layers += [nn.Linear(before, sizes[index + 1]), activation()]
    return nn.Sequential(*layers[:-1])


def train_gan(*, detach: bool) -> hv.Trace:
    generator, critic = mlp(2, 16, 4), mlp(4, 16, 1)
    of_generator, of_critic = Adam(generator.parameters(), lr=1e-3), Adam(critic.parameters(), lr=1e-3)
    with hv.record() as trace:
        for _ in range(STEPS):
            real, fake = torch.randn(8, 4), generator(torch.randn(8, 2))
            of_critic.zero_grad()
            seen = critic(fake.detach() if detach else fake)
            (F.softplus(-critic(real)).mean() + F.softplus(seen).mean()).backward(retain_graph=not detach)
            of_critic.step()
            of_generator.zero_grad()
            F.softplus(-critic(generator(torch.randn(8, 2)))).mean().backward()
            of_generator.step()
    return trace


@healthy("GAN")
def gan() -> hv.Trace:
    return train_gan(detach=True)


@healthy("GAN without detach")
def gan_without_detach() -> hv.Trace:
    return train_gan(detach=False)


@healthy("DQN with target network")
def dqn() -> hv.Trace:
    net = mlp(4, 16, 2)
    target = copy.deepcopy(net)
    optimizer = RMSprop(net.parameters(), lr=1e-3)
    with hv.record() as trace:
        for _ in range(STEPS):
            state, following, reward = torch.randn(8, 4), torch.randn(8, 4), torch.randn(8)
            with torch.no_grad():
                goal = reward + 0.9 * target(following).max(1).values
            optimizer.zero_grad()
            F.smooth_l1_loss(net(state).max(1).values, goal).backward()
            optimizer.step()
            with torch.no_grad():
                for old, new in zip(target.parameters(), net.parameters(), strict=True):
                    old.lerp_(new, 0.01)
    return trace


class VAE(nn.Module):
    """A variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = mlp(8, 16, 4), mlp(2, 16, 8)

    def forward(self, x: Tensor) -> Tensor:
        mean, log_variance = self.encoder(x).chunk(2, -1)
        sample = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        divergence = (mean.square() + log_variance.exp() - log_variance - 1).sum(-1).mean() / 2
        loss: Tensor = F.mse_loss(self.decoder(sample), x) + divergence
        return loss


@healthy("VAE")
def vae() -> hv.Trace:
    net, x = VAE(), torch.randn(8, 8)
    return train(net, lambda: net(x))


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
    return train(net, lambda: (net(torch.randn(6, 8)) - 1).square().mean())


class Siamese(nn.Module):
    """One net for two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp(4, 16, 8)

    def forward(self, one: Tensor, other: Tensor) -> Tensor:
        return F.cosine_similarity(self.net(one), self.net(other))


@healthy("Siamese net")
def siamese() -> hv.Trace:
    net, one, other = Siamese(), torch.randn(8, 4), torch.randn(8, 4)
    return train(net, lambda: (net(one, other) - 1).square().mean())


@healthy("contrastive learning")
def contrastive() -> hv.Trace:
    net, x = mlp(4, 16, 8), torch.randn(8, 4)

    def loss() -> Tensor:
        one, other = (F.normalize(net(x + 0.1 * torch.randn_like(x)), dim=-1) for _ in range(2))
        return F.cross_entropy(one @ other.T / 0.1, torch.arange(8))

    return train(net, loss)


class MultiTask(nn.Module):
    """A trunk with two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.classes, self.value = mlp(4, 16, 16), nn.Linear(16, 3), nn.Linear(16, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shared = self.trunk(x).relu()
        return self.classes(shared), self.value(shared)


@healthy("multi-task")
def multi_task() -> hv.Trace:
    net, x, y = MultiTask(), torch.randn(8, 4), torch.randint(3, (8,))

    def loss() -> Tensor:
        scores, value = net(x)
        return F.cross_entropy(scores, y) + value.square().mean()

    return train(net, loss)


# -- ways to train


@healthy("bfloat16 autocast")
def autocast() -> hv.Trace:
    net, x, y = mlp(8, 32, 3), torch.randn(8, 8), torch.randint(3, (8,))

    def loss() -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return F.cross_entropy(net(x), y)

    return train(net, loss)


@healthy("gradient accumulation")
def accumulation() -> hv.Trace:
    net = mlp(4, 16, 1)
    sgd = SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        for index in range(9):
            (net(torch.randn(8, 4)).square().mean() / 3).backward()
            if index % 3 == 2:
                sgd.step()
                sgd.zero_grad()
    return trace


@healthy("gradient accumulation, every third pass recorded")
def sampled_accumulation() -> hv.Trace:
    net = mlp(4, 16, 1)
    sgd = SGD(net.parameters(), lr=0.1)
    with hv.record(net, every=3) as trace:
        for index in range(12):
            (net(torch.randn(8, 4)).square().mean() / 4).backward()
            if index % 4 == 3:
                sgd.step()
                sgd.zero_grad()
    return trace


@healthy("GradScaler whose scale settles")
def grad_scaler() -> hv.Trace:
    net, x = mlp(4, 16, 1), torch.rand(8, 4)
    sgd, scaler = SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=2.0**16)
    with hv.record(net) as trace:
        for _ in range(STEPS):
            sgd.zero_grad()
            scaler.scale(net(x).square().mean()).backward()
            scaler.step(sgd)
            scaler.update()
    return trace


@healthy("GradScaler that skips a step")
def grad_scaler_skips() -> hv.Trace:
    net, x = mlp(4, 16, 1), torch.rand(8, 4)
    sgd, scaler = SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=2.0**127)
    with hv.record(net) as trace:
        for step in range(STEPS):
            sgd.zero_grad()
            scaler.scale(net(x).square().mean() * 1e2 ** (step == 0)).backward()
            scaler.step(sgd)
            scaler.update()
    return trace


@healthy("GradScaler whose scaled loss overflows, and no gradient")
def scaled_loss_overflows() -> hv.Trace:
    net, x = mlp(4, 16, 1), torch.rand(8, 4)
    sgd, scaler = SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cpu", init_scale=2.0**126)
    with hv.record(net) as trace:
        for step in range(STEPS):
            sgd.zero_grad()
            loss = net(x).square().mean() + 10 * (step == 0)
            scaler.scale(loss).backward()
            scaler.step(sgd)
            scaler.update()
    return trace


@healthy("second derivatives of ReLU")
def hessian() -> hv.Trace:
    net = mlp(3, 8, 1)
    with hv.record(net) as trace:
        torch.autograd.functional.hessian(lambda x: net(x).sum(), torch.randn(3))
    return trace


@healthy("gradcheck of a module")
def gradient_check() -> hv.Trace:
    net, x = nn.Linear(3, 2).double(), torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    with hv.record(net) as trace:
        assert torch.autograd.gradcheck(net, (x,)) and torch.autograd.gradgradcheck(net, (x,))
    return trace


@healthy("warm-up from 0")
def warm_up() -> hv.Trace:
    net, x = mlp(4, 16, 1), torch.rand(8, 4)
    adam = AdamW(net.parameters(), lr=1e-3)
    schedule = LambdaLR(adam, lambda step: step / STEPS)
    with hv.record(net) as trace:
        for _ in range(STEPS):
            adam.zero_grad()
            net(x).square().mean().backward()
            adam.step()
            schedule.step()
    return trace


@healthy("dropout")
def dropout() -> hv.Trace:
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 3))
    return classify(net, torch.randn(8, 8), 3)


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


@healthy("autoencoder")
def autoencoder() -> hv.Trace:
    net, x = mlp(8, 4, 2, 4, 8, activation=nn.Tanh), torch.randn(16, 8)
    return train(net, lambda: F.mse_loss(net(x), x))


@healthy("a tensor of one's own")
def own_tensor() -> hv.Trace:
    net, x, temperature = mlp(4, 8, 3), torch.randn(8, 4), torch.ones((), requires_grad=True)
    y = torch.randint(3, (8,))
    return train(net, lambda: F.cross_entropy(net(x) / temperature, y), Adam([*net.parameters(), temperature], lr=0.01))


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
    return train(net, lambda: net(x).square().mean())


def main() -> None:
    """Print the findings of each training."""
    for name, record in HEALTHY.items():
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            findings = record().findings
        print(name, [(finding.severity, finding.kind, finding.when, finding.sentence) for finding in findings])


if __name__ == "__main__":
    main()
