"""Right and wrong answers to what lesson 03 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises

RIGHT: dict[str, Any] = {
    "03.1": 116,
    "03.2": 6,
    "03.3": torch.tensor([30.0]),
    "03.4": "2",
    "03.5": lambda module, args: (2 * args[0], 2 * args[1]),
    "03.6": lambda module, args, kwargs, output: output * kwargs["c"],
    "03.7": 3,
}
WRONG: dict[str, list[Any]] = {
    "03.1": [6, 16, 106, 136, 5],
    "03.2": [116, 106, 5],
    "03.3": [21, 20, 2, 5],
    "03.4": [4, 0, 1, 5],
    "03.5": [
        lambda module, args: args[0] * 2,
        lambda module, args: args * 2,
        lambda module, args: (args[0] * 2, args[1]),
        lambda module, args: (args[0], args[1] * 2),
        lambda module, args: args,
        lambda module, args: (torch.tensor(2.0), torch.tensor(4.0)),
        lambda module, args: (args, args),
        lambda module, args: print([2 * x for x in args]),
        lambda module, args: tuple(x.mul_(2) for x in args),
        lambda args: (2 * args[0], 2 * args[1]),
        raises,
    ],
    "03.6": [
        lambda module, args, kwargs, output: output,
        lambda module, args, kwargs, output: output + kwargs["c"],
        lambda module, args, kwargs, output: output * 3,
        lambda module, args, kwargs, output: (args, kwargs),
        lambda module, args, kwargs, output: print(output * kwargs["c"]),
        lambda module, args, kwargs, output: output.mul_(kwargs["c"]),
        lambda module, args, output: output * 3,
        raises,
    ],
    "03.7": [4, 2, 1, 5],
}
