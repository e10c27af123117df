"""Find out which hooks a tool shows: run a module with four hooks, and search the output of the tool for them."""

import html
from typing import Any

import torch
from torch import nn

from benchmarks.cases import Case
from benchmarks.peers.tools import Peer

NAMES = ("spot_pre", "spot_forward", "spot_tensor", "spot_backward")
"""The hooks in the order in which they fire."""
BEFORE, AFTER = "7.25", "21.75"
"""The gradient before and after the tensor's hook."""


def spot_pre(module: nn.Module, inputs: Any) -> Any:
    """Change the input, as a forward pre-hook."""
    return tuple(x * 1.5 for x in inputs)


def spot_forward(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    """Change the output, as a forward hook."""
    return output * 1.25


def spot_tensor(grad: torch.Tensor) -> torch.Tensor:
    """Change the gradient, as a tensor hook."""
    return grad * 3


def spot_backward(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
    """Change the gradient of the input, as a full backward hook."""
    return tuple(None if grad is None else grad * 0.5 for grad in grad_input)


class HookedModule(nn.Module):
    """A layer with a forward pre-hook, a forward hook and a full backward hook, and a tensor hook on its output."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.layer.register_forward_pre_hook(spot_pre)
        self.layer.register_forward_hook(spot_forward)
        self.layer.register_full_backward_hook(spot_backward)
        self.factor = nn.Parameter(torch.tensor(float(BEFORE)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Multiply the layer's output by a factor, which is therefore the gradient of the output."""
        out: torch.Tensor = self.layer(x)
        if out.requires_grad:
            out.register_hook(spot_tensor)
        return out * self.factor


def find_visible_hooks(peer: Peer) -> dict[str, str]:
    """Find where ``peer`` has each fact about the hooks: ``shown``, ``data`` (in its data only), or ``""``."""
    case = Case("hooks", HookedModule(), torch.ones(1, 1, requires_grad=True), part="mul")
    trace = peer.capture(peer.prepare(case))
    shown = html.unescape(" ".join(peer.picture(trace)))
    return locate_names({"shown": shown, "data": peer.data(trace)})


def locate_names(texts: dict[str, str]) -> dict[str, str]:
    """Find the text with each name, all names in the order of firing, and the gradients before and after the hook."""
    facts = {name: (name,) for name in NAMES} | {"order": NAMES, "values": (BEFORE, AFTER)}
    return {
        fact: next((key for key, text in texts.items() if _in_order(text, words)), "") for fact, words in facts.items()
    }


def _in_order(text: str, words: tuple[str, ...]) -> bool:
    """Whether ``text`` contains all words in this order."""
    position = 0
    for word in words:
        position = text.find(word, position) + len(word)
        if position < len(word):
            return False
    return True
