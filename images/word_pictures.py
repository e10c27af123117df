"""Draw the pictures of the glossary in ``images/words/`` anew: ``make images``. Every curve and picture is computed."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import hookviz as hv  # noqa: E402
from hookviz.course import transformer, vision  # noqa: E402
from hookviz.course.sick_net import read_digits  # noqa: E402

STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "hookviz",  # the same ids in every run
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
PURPLE, ORANGE, GREY = "#6d28d9", "#b45309", "#475569"


def draw_graphs() -> dict[str, str]:
    """Name → SVG of a word that hookviz itself can show."""
    figures = {"diamond": diamond(), "residual_connection": residual_connection(), "shared": shared(), "seed": seed()}
    return {name: figure.svg() for name, figure in figures.items()}


def diamond() -> hv.Figure:
    """Two ways from x to y."""
    x = torch.tensor(1.0, requires_grad=True)
    left = x * 2
    right = x * 3
    y = left + right
    del left, right
    return hv.draw(y)


def residual_connection() -> hv.Figure:
    """A way around a multiplication."""
    x = torch.tensor(2.0, requires_grad=True)
    weight = torch.tensor(3.0, requires_grad=True)
    y = x + weight * x
    return hv.draw(y)


def shared() -> hv.Figure:
    """One weight, used twice: two edges lead to it."""
    x = torch.tensor(2.0, requires_grad=True)
    weight = torch.tensor(3.0, requires_grad=True)
    y = weight * (weight * x)
    return hv.draw(y)


def seed() -> hv.Figure:
    """A pass that begins with 10."""
    x = torch.tensor(3.0, requires_grad=True)
    y = x * 2
    with hv.record() as trace:
        y.backward(torch.tensor(10.0))
    return trace.figure()


@contextmanager
def panels(path: Path, count: int = 1, width: float = 2.9, height: float = 2.0) -> Iterator[list[Axes]]:
    """Panels that are saved at ``path`` at the end."""
    with mpl.rc_context(STYLE):
        figure, axes = plt.subplots(1, count, figsize=(width * count, height), layout="constrained", squeeze=False)
        yield list(axes[0])
        figure.savefig(path, metadata={"Date": None}, facecolor="white")
        plt.close(figure)


def draw_function(path: Path, function: Callable[[Tensor], Tensor], mark: tuple[float, float] | None = None) -> None:
    """A function of one number and its gradient; ``mark`` is the range of inputs that the word is about."""
    x = torch.linspace(-6, 6, 241, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert x.grad is not None
    with panels(path) as (panel,):
        panel.plot(x.detach(), y.detach(), color=PURPLE, label="value")
        panel.plot(x.detach(), x.grad, color=ORANGE, linestyle="--", label="gradient")
        if mark:
            panel.axvspan(*mark, color="#fde68a")
        panel.set_xlabel("input")
        panel.legend(frameon=False)


def note_norm(norms: list[float], grad: Tensor) -> None:
    """A hook that notes the norm of the gradient."""
    norms.append(grad.norm().item())


def draw_norms(target: Path) -> None:
    """Gradients that shrink and grow: the norm at each of 20 layers, measured in one backward pass."""
    for name, module, scale in (("vanishing", nn.Sigmoid(), 1.0), ("exploding", nn.Identity(), 2.0)):
        torch.manual_seed(0)
        norms: list[float] = []
        x = torch.randn(16, 64, requires_grad=True)
        value = x
        for _ in range(20):
            value = module(value @ (scale * torch.randn(64, 64) / 8))
            value.register_hook(partial(note_norm, norms))
        value.sum().backward()
        with panels(target / f"{name}.svg") as (panel,):
            panel.semilogy(range(1, 21), norms[::-1], "o-", color=PURPLE, markersize=4)
            panel.set_xticks([1, 10, 20])
            panel.set_xlabel("layer")
            panel.set_ylabel("gradient's norm")


def draw_losses(target: Path) -> None:
    """Two trainings on 100 digits: a large network for long, and a tiny one with a small rate."""
    digits, labels = read_digits()
    digits = digits.flatten(1) / 16
    for name, width, rate in (("overfitting", 200, 0.02), ("underfitting", 2, 0.0005)):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
        optimizer = torch.optim.Adam(net.parameters(), rate)
        training: list[float] = []
        validation: list[float] = []
        for _ in range(120):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(digits[:100]), labels[:100])
            loss.backward()
            optimizer.step()
            training.append(loss.item())
            with torch.no_grad():
                validation.append(nn.functional.cross_entropy(net(digits[500:]), labels[500:]).item())
        with panels(target / f"{name}.svg") as (panel,):
            panel.plot(training, color=PURPLE, label="training")
            panel.plot(validation, color=ORANGE, linestyle="--", label="validation")
            panel.set_ylim(0, 2.6)
            panel.set_xlabel("epoch")
            panel.set_ylabel("loss")
            panel.legend(frameon=False)


def draw_descents(target: Path) -> None:
    """Steps down a valley: two learning rates, and momentum."""
    valley = torch.linspace(-4, 4, 100)
    for name, optimizers in (
        ("learning_rate", [(0.1, 0.0), (1.8, 0.0)]),
        ("momentum", [(0.1, 0.0), (0.1, 0.6)]),
    ):
        with panels(target / f"{name}.svg", len(optimizers), width=2.3) as axes:
            for panel, (rate, momentum) in zip(axes, optimizers, strict=True):
                w = nn.Parameter(torch.tensor(-4.0))
                optimizer = torch.optim.SGD([w], lr=rate, momentum=momentum)
                places = [w.item()]
                for _ in range(6):
                    optimizer.zero_grad()
                    (w**2 / 2).backward()
                    optimizer.step()
                    places.append(w.item())
                panel.plot(valley, valley**2 / 2, color=GREY)
                panel.plot(places, [place**2 / 2 for place in places], "o-", color=PURPLE, markersize=4)
                panel.set_title(f"lr={rate}" + (f", momentum={momentum}" if name == "momentum" else ""), fontsize=11)
                panel.set_xlabel("weight")
            axes[0].set_ylabel("loss")


def draw_pictures(target: Path) -> None:
    """A digit and its feature map; forms and where a trained network looks."""
    digits, _ = read_digits()
    edges = torch.tensor([[[[1.0, 0, -1], [1, 0, -1], [1, 0, -1]]]])
    with torch.no_grad():
        shown = {"a digit": digits[0, 0], "feature map": nn.functional.conv2d(digits[:1], edges)[0, 0]}
    show_pictures(target / "feature_map.svg", shown)
    letters, labels, _ = vision.read_envelopes()
    torch.manual_seed(0)
    net = vision.ResNet(depths=(1,), width=16, classes=10, channels=1)
    vision.train_on_pictures(net, letters, labels, epochs=8)
    show_pictures(target / "heat_map.svg", {"picture": letters[1503, 0], "heat map": heat_of(net, letters[1503:1504])})
    forms, _ = vision.read_forms()
    marked = {f"a {label}": form[0] for form, label in zip(forms[4:7], labels[4:7].tolist(), strict=True)}
    show_pictures(target / "shortcut.svg", marked)


def heat_of(net: vision.ResNet, picture: Tensor) -> Tensor:
    """Grad-CAM of the class that the network names."""
    kept: dict[str, Tensor] = {}

    def keep(module: nn.Module, args: tuple[Tensor], output: Tensor) -> None:
        kept["maps"] = output.detach()
        output.register_hook(lambda grad: kept.update(grad=grad))

    with net.layer1.register_forward_hook(keep):
        net(picture).max().backward()
    return (kept["grad"].mean((2, 3), keepdim=True) * kept["maps"]).sum(1)[0].relu()


def show_pictures(path: Path, pictures: dict[str, Tensor]) -> None:
    """Pictures side by side, with titles."""
    with panels(path, len(pictures), width=1.5, height=1.8) as axes:
        for panel, (title, picture) in zip(axes, pictures.items(), strict=True):
            panel.imshow(picture.detach().numpy(), cmap="inferno" if "heat" in title else "gray")
            panel.set_title(title, fontsize=11)
            panel.axis("off")


def draw_attention(target: Path) -> None:
    """The pattern of a trained head that finds what followed the letter last time."""
    net = transformer.SmallTransformer()
    transformer.train_to_copy(net)
    text = "hbkdnpafcjlmkd"
    kept: list[Tensor] = []
    with net.blocks[1].attention.pattern.register_forward_hook(lambda module, args, output: kept.append(output)):
        net(transformer.as_row(text))
    heads = kept[0][0].detach()
    place = len(text) - 1
    best = int(heads[:, place, text.index("d") + 1].argmax())
    with panels(target / "attention_pattern.svg", height=2.9) as (panel,):
        panel.imshow(heads[best].numpy(), cmap="Purples", vmin=0, vmax=1)
        panel.set_xticks(range(len(text)), list(text))
        panel.set_yticks(range(len(text)), list(text))
        panel.set_xlabel("looks at")


def main(target: Path = HERE / "words") -> None:
    """Write all pictures into ``target``."""
    target.mkdir(exist_ok=True)
    for name, svg in draw_graphs().items():
        (target / f"{name}.svg").write_text(svg, encoding="utf-8")
    draw_function(target / "relu.svg", torch.relu, mark=(-6, 0))
    draw_function(target / "sigmoid.svg", torch.sigmoid)
    draw_function(target / "saturated.svg", torch.sigmoid, mark=(4, 6))
    draw_function(target / "clip.svg", lambda x: x.clamp(-1, 1))
    draw_norms(target)
    draw_losses(target)
    draw_descents(target)
    draw_pictures(target)
    draw_attention(target)


if __name__ == "__main__":
    main()
