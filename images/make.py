"""Draw the pictures in ``images/`` anew, from the package itself: ``make images``."""

import re
import sys
from pathlib import Path
from typing import Any

import torch
import torchviz

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import hookviz as hv  # noqa: E402


def pictures() -> dict[str, str]:
    """Name → SVG of the graph a, b, c, d, e: before backward, with its tensors, and at c_hook; and torchviz's."""
    a = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor(3.0, requires_grad=True)
    c = a * b
    d = torch.tensor(4.0, requires_grad=True)

    def c_hook(grad: torch.Tensor) -> torch.Tensor:
        return grad + 2

    c.register_hook(c_hook)
    c.register_hook(lambda grad: None)
    c.retain_grad()
    d.register_hook(lambda grad: grad + 100)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    e.retain_grad()
    svgs: dict[str, str] = {"torchviz": numbered(torchviz.make_dot(e)).pipe("svg", encoding="utf-8")}
    drawn = {"a_to_e": hv.draw(e), "leaf_and_intermediate": hv.draw(e, tensors=True)}
    with hv.record() as trace:
        e.backward()
    at = next(step.index for step in trace.firings if step.hook and step.hook.name == "c_hook")
    drawn["c_hook"] = trace.figure(step=at)
    drawn["module"] = four_hooks().figure()
    return svgs | {name: figure.svg() for name, figure in drawn.items()}


class Scaled(torch.nn.Module):
    """Multiplies by its one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor(3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight


def four_hooks() -> hv.Trace:
    """A pass through a module with a hook of each of the four kinds."""

    def halve(module: torch.nn.Module, args: tuple[torch.Tensor]) -> torch.Tensor:
        return args[0] / 2

    def add_ten(module: torch.nn.Module, args: tuple[torch.Tensor], output: torch.Tensor) -> torch.Tensor:
        return output + 10

    def double(module: torch.nn.Module, grad_output: tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        return (grad_output[0] * 2,)

    def look(module: torch.nn.Module, grad_input: tuple[torch.Tensor], grad_output: tuple[torch.Tensor]) -> None:
        return None

    scaled, x = Scaled(), torch.tensor(4.0, requires_grad=True)
    scaled.register_forward_pre_hook(halve)
    scaled.register_forward_hook(add_ten)
    scaled.register_full_backward_pre_hook(double)
    scaled.register_full_backward_hook(look)
    with hv.record(scaled) as trace:
        y = scaled(x)
        y.backward()
    return trace


def numbered(dot: Any) -> Any:
    """The picture of torchviz with nodes counted from 0: it names them after addresses, which differ in every run."""
    count: dict[str, str] = {}
    pattern = re.compile(r"\b\d{9,}\b")
    dot.body = [pattern.sub(lambda found: count.setdefault(found[0], f"n{len(count)}"), line) for line in dot.body]
    return hv.render(dot)


if __name__ == "__main__":
    for name, svg in pictures().items():
        (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")
    import plot_pictures
    import shots
    import site_pictures
    import word_pictures

    word_pictures.main()
    plot_pictures.main()
    shots.main(None)
    site_pictures.main()
