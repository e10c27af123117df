"""The player on the first page of the site: the course's first graph with two hooks, each of them a switch."""

import torch

import hookviz as hv
from hookviz.player.html_page import render_output


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    """Change the gradient of c on its way."""
    return grad + 2


def two_hooks() -> None:
    """One backward pass."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    c.register_hook(c_hook)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    e.backward()


def first_player() -> str:
    """What Jupyter would show for it."""
    return render_output(hv.whatif(two_hooks).content())
