"""What a tool shows of hooks: a module with three of them, and a look for them in what the tool hands out."""

import html
from typing import Any

import torch
from torch import nn

from benchmarks.cases import Case
from benchmarks.peers.tools import Peer

NAMES = ("spot_forward", "spot_tensor", "spot_backward")
"""The hooks in the order in which they fire."""
BEFORE, AFTER = "7.25", "21.75"
"""The gradient before and after the tensor's hook."""


def spot_forward(module: nn.Module, inputs: Any, output: torch.Tensor) -> torch.Tensor:
    """A forward hook that changes the output."""
    return output * 1.25


def spot_tensor(grad: torch.Tensor) -> torch.Tensor:
    """A tensor hook that changes the gradient."""
    return grad * 3


def spot_backward(module: nn.Module, grad_input: Any, grad_output: Any) -> Any:
    """A full backward hook that changes the gradient of the input."""
    return tuple(None if grad is None else grad * 0.5 for grad in grad_input)


class Hooked(nn.Module):
    """One layer with a forward hook and a full backward hook, and a tensor hook on what it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(1, 1)
        self.layer.register_forward_hook(spot_forward)
        self.layer.register_full_backward_hook(spot_backward)
        self.factor = nn.Parameter(torch.tensor(float(BEFORE)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's output times a factor, which is therefore its gradient."""
        out: torch.Tensor = self.layer(x)
        if out.requires_grad:
            out.register_hook(spot_tensor)
        return out * self.factor


def sees(peer: Peer) -> dict[str, str]:
    """For each thing to know about hooks where ``peer`` has it: ``shown``, ``data`` (kept, not shown), or nothing."""
    case = Case("hooks", Hooked(), torch.ones(1, 1, requires_grad=True), part="mul")
    trace = peer.capture(peer.prepare(case))
    shown = html.unescape(" ".join(peer.picture(trace)))
    return where({"shown": shown, "data": peer.data(trace)})


def where(texts: dict[str, str]) -> dict[str, str]:
    """Where each name stands, all names in the order of firing, and the gradient before and after its hook."""
    looks = {name: (name,) for name in NAMES} | {"order": NAMES, "values": (BEFORE, AFTER)}
    return {what: next((k for k, text in texts.items() if _in_order(text, parts)), "") for what, parts in looks.items()}


def _in_order(text: str, parts: tuple[str, ...]) -> bool:
    """Whether all the parts stand in ``text``, one after the other."""
    place = 0
    for part in parts:
        place = text.find(part, place) + len(part)
        if place < len(part):
            return False
    return True
