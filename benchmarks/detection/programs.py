"""Writes the programs: a net, one fault or two of its healthy twin, at module level, in functions or in a class."""

from collections.abc import Iterator, Sequence
from textwrap import indent
from typing import NamedTuple

from benchmarks.detection.faults import MARK, Fault
from benchmarks.detection.nets import Net

USUAL_CLEAR = Fault._field_defaults["clear"]
STYLES = ("module", "main", "class")
HEAD = """import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

SEEN = []
"""


class Placed(NamedTuple):
    """A fault in a layer of a net."""

    fault: Fault
    layer: int
    is_healthy: bool = False

    def piece(self, name: str, net: str, made: str = "") -> str:
        """Return a piece of the program."""
        text = getattr(self.fault, name)
        if self.is_healthy:
            text = self.fault.healthy.get(name, text)
        if name == "helper":
            return str(text)
        return str(text.format(net=net, i=self.layer, made=made))


def write_program(net: Net, faults: Sequence[Placed], style: str, seed: int) -> str:
    """Write a program with some faults in different layers."""
    helpers = dict.fromkeys(fault.piece("helper", "") for fault in faults)
    training = _write_training(net, faults, "self.net" if style == "class" else "net")
    body = f"torch.manual_seed({seed})\n{_STYLES[style](training)}"
    return "\n".join([HEAD, net.classes, *helpers, _write_net(net, faults), "", body, ""])


def _write_net(net: Net, faults: Sequence[Placed]) -> str:
    made = [f"self.l{index} = {layer}" for index, layer in enumerate(net.layers)]
    made += [fault.piece("made", "self") for fault in faults]
    lines = [line for index in range(len(net.layers)) for line in _write_call(net, faults, index).splitlines()]
    parts = [
        "\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()",
        indent("\n".join(filter(None, made)), " " * 8),
        "\n    def forward(self, h):",
        indent("\n".join(lines), " " * 8),
        "        return h\n",
    ]
    return "\n".join(parts)


def _write_call(net: Net, faults: Sequence[Placed], index: int) -> str:
    fault = next((one for one in faults if one.layer == index), None)
    line = "" if fault is None else fault.piece("line", "self")
    call = ("" if fault is None else fault.piece("call", "self")) or f"self.l{index}(h)"
    code, _mark, mark = call.partition(MARK)
    return line or net.apply.format(call=code) + (MARK if _mark else mark)


def _write_training(net: Net, faults: Sequence[Placed], name: str) -> str:
    def pieces(piece: str) -> list[str]:
        return [fault.piece(piece, name, net.layers[fault.layer]) for fault in faults]

    clears = pieces("clear")
    loop = [
        *pieces("first"),
        f"x = {net.batch}",
        f"loss = {name}(x).square().mean()",
        next((one for one in clears if one != USUAL_CLEAR), USUAL_CLEAR),
        "loss.backward()",
        *pieces("between"),
        "opt.step()",
    ]
    lines = [
        f"{name} = Net()",
        *pieces("before"),
        f"opt = torch.optim.SGD([p for p in {name}.parameters() if p.requires_grad], lr=0.01)",
        *pieces("late"),
        f"for _ in range({max(one.fault.turns for one in faults)}):",
        indent("\n".join(filter(None, loop)), "    "),
        *pieces("after"),
    ]
    return "\n".join(filter(None, lines))


def _in_main(training: str) -> str:
    return f"\n\ndef main():\n{indent(training, '    ')}\n\n\nmain()\n"


def _in_class(training: str) -> str:
    return f"\n\nclass Trainer:\n    def fit(self):\n{indent(training, ' ' * 8)}\n\n\nTrainer().fit()\n"


_STYLES = {"module": str, "main": _in_main, "class": _in_class}


def has_mark(fault: Fault) -> bool:
    """Return whether a line of the program is the fault; without one, something is missing."""
    return any(MARK in str(getattr(fault, piece)) for piece in Fault._fields if piece != "healthy")


def find_marks(text: str) -> Iterator[int]:
    """Yield the numbers of the marked lines."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.endswith(MARK):
            yield number
