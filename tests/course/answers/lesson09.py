"""Right and wrong answers to what lesson 09 asks."""

from collections.abc import Callable
from typing import Any

import torch

from tests.course.answers.common import raises


def keeps_measurements(measure: Callable[[Any], Any], modes: tuple[bool, ...] = (True,)) -> Callable[[Any], list[Any]]:
    """A function that registers a hook, which appends ``measure(output)`` to a list in these training modes."""

    def dead_share(layer: Any) -> list[Any]:
        shares: list[Any] = []

        def hook(module: Any, args: Any, output: Any) -> None:
            if module.training in modes:
                shares.append(measure(output))

        layer.register_forward_hook(hook)
        return shares

    return dead_share


def share(output: torch.Tensor) -> float:
    return (output == 0).all(0).float().mean().item()


def forgets_the_list(layer: Any) -> None:
    keeps_measurements(share)(layer)


def forgets_the_hook(layer: Any) -> list[Any]:
    return []


def gives_the_share_back(layer: Any) -> list[Any]:
    layer.register_forward_hook(lambda module, args, output: torch.tensor(share(output)))
    return []


RIGHT: dict[str, Any] = {
    "09.1": 6,
    "09.2": torch.tensor(1.0),
    "09.3": 13.5,
    "09.4": keeps_measurements(share),
    "09.5": torch.tensor(0.99),
}
WRONG: dict[str, list[Any]] = {
    "09.1": [10, 9, 5, 1, 0, 7],
    "09.2": [0, 10, 9, 5],
    "09.3": [12, 15, 12.5, 4.5, 1.5, 7],
    "09.4": [
        keeps_measurements(share, (True, False)),
        keeps_measurements(share, (False,)),
        keeps_measurements(lambda output: (output == 0).float().mean()),
        keeps_measurements(lambda output: (output == 0).all(0).sum()),
        keeps_measurements(lambda output: (output != 0).any(0).float().mean()),
        keeps_measurements(lambda output: (output == 0).all(1).float().mean()),
        keeps_measurements(lambda output: (output == 0).all(0)),
        keeps_measurements(lambda output: 0.3),
        keeps_measurements(lambda output: 1 / 0),
        forgets_the_list,
        forgets_the_hook,
        gives_the_share_back,
        raises,
    ],
    "09.5": [0.95, 0.995, 0.999, 1, 1.01, 0.5],
}
