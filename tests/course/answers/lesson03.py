"""Right and wrong answers to what lesson 03 asks."""

from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises

find_tensors_with = partial(
    changed,
    """
import torch

def find_tensors(output):
    if isinstance(output, torch.Tensor):
        return [output.detach()]
    parts = list(output.values()) if isinstance(output, dict) else output
    return [t for part in parts for t in find_tensors(part)] if isinstance(parts, (list, tuple)) else []
""",
    "find_tensors",
)
find_tensors = find_tensors_with()


def find_in_flat_outputs(output: Any) -> list[torch.Tensor]:
    parts = output if isinstance(output, (list, tuple)) else [output]
    return [part.detach() for part in parts if isinstance(part, torch.Tensor)]


def find_in_growing_list(output: Any, found: list[Any] = []) -> list[Any]:  # noqa: B006 - the mistake
    found.extend(find_tensors(output))
    return found


def find_in_outer_dicts(output: Any) -> Any:
    parts = output.values() if isinstance(output, dict) else ()
    return [t for part in parts for t in find_in_flat_outputs(part)] if parts else find_tensors(output)


RIGHT: dict[str, Any] = {
    "03.1": "A, B, D, C",
    "03.2": 116,
    "03.3": 6,
    "03.4": torch.tensor([1.0]),
    "03.5": "2",
    "03.6": lambda module, args: (2 * args[0], 2 * args[1]),
    "03.7": lambda module, args, kwargs, output: output * kwargs["c"],
    "03.8": 3,
    "03.9": find_tensors,
}
WRONG: dict[str, list[Any]] = {
    "03.1": ["ABD", "BADC", ["A", "D", "B", "C"], "ABCD"],
    "03.2": [6, 16, 106, 136, 5],
    "03.3": [116, 106, 5],
    "03.4": [3, 2, 0, 5],
    "03.5": [4, 0, 1, 5],
    "03.6": [
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
    "03.7": [
        lambda module, args, kwargs, output: output,
        lambda module, args, kwargs, output: output + kwargs["c"],
        lambda module, args, kwargs, output: output * 3,
        lambda module, args, kwargs, output: (args, kwargs),
        lambda module, args, kwargs, output: print(output * kwargs["c"]),
        lambda module, args, kwargs, output: output.mul_(kwargs["c"]),
        lambda module, args, output: output * 3,
        raises,
    ],
    "03.8": [4, 2, 1, 5],
    "03.9": [
        lambda: [None],
        lambda output: output.detach(),
        lambda output: [output],
        lambda output: [output.detach(), output.detach()],
        lambda output: [output.detach()],
        lambda output: [output[0].detach()] if isinstance(output, tuple) else [output.detach()],
        find_in_flat_outputs,
        lambda output: [part.detach() for part in output] if isinstance(output, (tuple, list)) else [output.detach()],
        find_tensors_with(("else []", "else [output]")),
        find_tensors_with((" if isinstance(parts, (list, tuple)) else []", "")),
        lambda output: [] if isinstance(output, dict) else find_tensors(output),
        lambda output: raises() if isinstance(output, dict) else find_tensors(output),
        lambda output: print(output),
        lambda output: tuple(find_tensors(output)),
        lambda output: (tensor for tensor in find_tensors(output)),
        lambda output: find_tensors(output)[::-1],
        "find_tensors",
        find_tensors((torch.ones(1),)),
        find_in_growing_list,
        lambda output: None if output is None else find_tensors(output),
        find_in_outer_dicts,
        lambda output: [t.detach() for t in output.values()] if isinstance(output, dict) else find_tensors(output),
        find_tensors_with(
            ("isinstance(output, dict)", "type(output) is dict"),
            ("isinstance(parts, (list, tuple))", "type(parts) in (list, tuple)"),
        ),
        lambda output: raises() if hasattr(output, "_fields") else find_tensors(output),
        raises,
    ],
}
