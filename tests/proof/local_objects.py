"""Programs with a hook that does not fire, with their objects held in several ways: the cause is the same in all.

At module level the objects exist when the recording ends; in the other ways they are gone by then.
"""

import textwrap
from typing import NamedTuple

HEAD = """
import gc, sys
import pytest
import torch
from torch import nn

torch.manual_seed(0)


def my_hook(*_):
    pass
"""


class LocalProgram(NamedTuple):
    """A program in two parts, so that a fixture of pytest can make the model and a test can train it."""

    model: str
    """Makes ``model``."""
    loss: str
    """Makes ``loss``."""
    kind: str
    """The kind of the one finding about the hook."""
    on: str
    """What the hook is on."""


_NET = "model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))"
_CALL = "loss = model(torch.randn(5, 4)).mean()"

PROGRAMS = {
    "forward is called directly": LocalProgram(
        f"{_NET}\nmodel[0].register_forward_hook(my_hook)",
        "loss = model[2](model[1](model[0].forward(torch.randn(5, 4)))).mean()",
        "bypassed",
        "model.0",
    ),
    "tensor is detached": LocalProgram(
        _NET,
        "h = model[0](torch.randn(5, 4))\nh.register_hook(my_hook)\nloss = model[2](model[1](h.detach())).mean()",
        "cut",
        "h",
    ),
    "parameter is frozen": LocalProgram(
        f"{_NET}\nmodel[0].weight.register_hook(my_hook)\nmodel[0].weight.requires_grad_(False)",
        _CALL,
        "frozen",
        "model.0.weight",
    ),
    "hook comes too late": LocalProgram(
        _NET, f"{_CALL}\nmodel[2].register_full_backward_hook(my_hook)", "late", "model.2"
    ),
}


def _indent(text: str, depth: int = 1) -> str:
    return textwrap.indent(text.strip("\n"), "    " * depth)


def make_script(program: LocalProgram, way: str) -> str:
    """Write the script of a program whose objects are held in one of ``WAYS``."""
    training = f"{program.loss}\nloss.backward()"
    body = f"{program.model}\n{training}"
    text = {
        "module level": body,
        "main": f"def main():\n{_indent(body)}\n\n\nif __name__ == '__main__':\n    main()\n    gc.collect()",
        "generator": f"def steps():\n{_indent(body)}\n    yield 1\n\n\nfor _ in steps():\n    pass",
        "sys.exit(main())": f"def main():\n{_indent(body)}\n\n\nsys.exit(main())",
        "fixture": (
            f"@pytest.fixture\ndef model():\n{_indent(program.model)}\n    return model\n\n\n"
            f"def test_training(model):\n{_indent(training)}"
        ),
    }[way]
    return f"{HEAD}\n\n{text}\n"


WAYS = ("module level", "main", "generator", "sys.exit(main())", "fixture")
