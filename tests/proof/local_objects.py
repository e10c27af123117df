"""Five programs with a hook that does not fire, each with its objects held in seven ways: the cause is the same in all.

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
    training: str
    kind: str
    """The kind of the one finding about the hook."""
    on: str
    """What the hook is on."""


_NET = "model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))"
_LOOP = """
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    {forward}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS = {
    "forward is called directly": LocalProgram(
        f"{_NET}\nmodel[0].register_forward_hook(my_hook)",
        _LOOP.format(forward="loss = model[2](model[1](model[0].forward(torch.randn(5, 4)))).mean()"),
        "bypassed",
        "model.0",
    ),
    "tensor is detached": LocalProgram(
        _NET,
        _LOOP.format(
            forward="h = model[0](torch.randn(5, 4))\n    h.register_hook(my_hook)\n"
            "    loss = model[2](model[1](h.detach())).mean()"
        ),
        "cut",
        "h",
    ),
    "parameter is frozen": LocalProgram(
        f"{_NET}\nmodel[0].weight.register_hook(my_hook)\nmodel[0].weight.requires_grad_(False)",
        _LOOP.format(forward="loss = model(torch.randn(5, 4)).mean()"),
        "frozen",
        "model.0.weight",
    ),
    "layer is not called": LocalProgram(
        f"{_NET}\nmodel.add_module('other', nn.Linear(8, 1))\n"
        "model.forward = lambda x: model[2](model[1](model[0](x)))\n"
        "model.other.register_full_backward_hook(my_hook)",
        _LOOP.format(forward="loss = model(torch.randn(5, 4)).mean()"),
        "not_called",
        "model.other",
    ),
    "hook comes too late": LocalProgram(
        _NET,
        "loss = model(torch.randn(5, 4)).mean()\nmodel[2].register_full_backward_hook(my_hook)\nloss.backward()",
        "late",
        "model.2",
    ),
}


def _indent(text: str, depth: int = 1) -> str:
    return textwrap.indent(text.strip("\n"), "    " * depth)


def make_script(program: LocalProgram, way: str) -> str:
    """Write the script of a program whose objects are held in one of ``WAYS``."""
    body = f"{program.model}\n{program.training}"
    text = {
        "module level": body,
        "main": f"def main():\n{_indent(body)}\n\n\nif __name__ == '__main__':\n    main()",
        "method": f"class Work:\n    def run(self):\n{_indent(body, 2)}\n\n\nWork().run()",
        "generator": f"def steps():\n{_indent(body)}\n    yield 1\n\n\nfor _ in steps():\n    pass",
        "sys.exit(main())": f"def main():\n{_indent(body)}\n\n\nsys.exit(main())",
        "gc.collect()": f"def main():\n{_indent(body)}\n\n\nmain()\ngc.collect()",
        "fixture": (
            f"@pytest.fixture\ndef model():\n{_indent(program.model)}\n    return model\n\n\n"
            f"def test_training(model):\n{_indent(program.training)}"
        ),
    }[way]
    return f"{HEAD}\n\n{text}\n"


WAYS = ("module level", "main", "method", "generator", "sys.exit(main())", "gc.collect()", "fixture")
