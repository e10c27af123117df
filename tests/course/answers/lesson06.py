"""Right and wrong answers to what lesson 06 asks."""

from collections.abc import Callable
from typing import Any

import torch

from tests.course.answers.common import raises


def keeps_outputs(transform: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    """A function that registers a hook, which appends ``transform(output)`` to a list."""

    def keep_outputs(layer: Any) -> list[Any]:
        kept: list[Any] = []
        layer.register_forward_hook(lambda module, args, output: kept.append(transform(output)))
        return kept

    return keep_outputs


def forgets_the_list(layer: Any) -> None:
    keeps_outputs(lambda output: output.detach().clone())(layer)


def keeps_the_last(layer: Any) -> list[Any]:
    kept: list[Any] = [None]
    layer.register_forward_hook(lambda module, args, output: kept.__setitem__(0, output.detach().clone()))
    return kept


def gives_the_copy_back(layer: Any) -> list[Any]:
    kept: list[Any] = []

    def hook(module: Any, args: Any, output: Any) -> Any:
        kept.append(output.detach().clone())
        return output.detach()

    layer.register_forward_hook(hook)
    return kept


RIGHT: dict[str, Any] = {
    "06.1": 3,
    "06.2": torch.tensor(2.2),
    "06.3": 0,
    "06.4": torch.tensor([4.0]),
    "06.5": keeps_outputs(lambda output: output.detach().clone()),
    "06.6": 6,
}
WRONG: dict[str, list[Any]] = {
    "06.1": [5, 2, 1, 0, 4],
    "06.2": [1, 1.2, 5],
    "06.3": [-3, -1, 2, 5],
    "06.4": [1, 2, 8, 5],
    "06.5": [
        keeps_outputs(lambda output: output),
        keeps_outputs(lambda output: output.detach().cpu()),
        keeps_outputs(lambda output: output.clone()),
        keeps_outputs(lambda output: output.tolist()),
        keeps_outputs(lambda output: output.detach() * 2),
        keeps_outputs(lambda output: 1 / 0),
        forgets_the_list,
        keeps_the_last,
        gives_the_copy_back,
        raises,
    ],
    "06.6": [3, 2, 1, 9, 7],
}
