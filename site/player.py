"""The players of the site: a what-if with two hooks on the first page, and a pass with a silent hook in the manual."""

import torch

import hookviz as hv
from hookviz.player.html_page import render_output


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    """Change the gradient of c on its way."""
    return grad + 2


def two_hooks() -> None:
    """One backward pass through the course's first graph."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    c.register_hook(c_hook)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    e.backward()


def first_player() -> str:
    """What Jupyter would show for it."""
    return render_output(hv.whatif(two_hooks).content())


def manual_player() -> str:
    """The player of a pass with two hooks, and a third one that does not fire, since its tensor is not used."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    c.register_hook(c_hook)
    d.register_hook(lambda grad: grad + 100)
    unused = a * d
    e = c * d
    with hv.record() as trace:
        unused.register_hook(lambda grad: grad * 0)
        e.backward()
    return render_output(trace.content())


PAGES = {"player.html": first_player, "manual_player.html": manual_player}
"""The files that pages of the site include, and what makes each."""
