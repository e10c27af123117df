"""Right and wrong answers to what lesson 13 asks."""

from collections.abc import Callable
from typing import Any

import torch

from tests.course.answers.common import raises

Hook = Callable[[Any, Any, torch.Tensor], Any]


def keeps_head(head: int) -> Hook:
    def hook(module: Any, args: Any, fetched: torch.Tensor) -> torch.Tensor:
        changed = torch.zeros_like(fetched)
        changed[:, head] = fetched[:, head]
        return changed

    return hook


def switches_head_off(head: int) -> Hook:
    return lambda module, args, fetched: fetched - keeps_head(head)(module, args, fetched)


def writes_into_the_output(head: int) -> Hook:
    def hook(module: Any, args: Any, fetched: torch.Tensor) -> torch.Tensor:
        kept = fetched[:, head].clone()
        fetched.zero_()
        fetched[:, head] = kept
        return fetched

    return hook


def returns_one_head(head: int) -> Hook:
    return lambda module, args, fetched: fetched[:, head]


def keeps_a_place(head: int) -> Hook:
    def hook(module: Any, args: Any, fetched: torch.Tensor) -> torch.Tensor:
        changed = torch.zeros_like(fetched)
        changed[:, :, head] = fetched[:, :, head]
        return changed

    return hook


def run_with(net: Any, module: Any, row: torch.Tensor, hook: Any) -> torch.Tensor:
    with module.register_forward_hook(hook):
        scores: torch.Tensor = net(row)
    return scores


def get_output(net: Any, module: Any, row: torch.Tensor) -> torch.Tensor:
    kept: list[torch.Tensor] = []
    run_with(net, module, row, lambda module, args, output: kept.append(output))
    return kept[0]


def put_in(output_a: torch.Tensor, places: Any) -> Any:
    def hook(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, places] = output_a[:, places]
        return changed

    return hook


def patches(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a), place))


def patches_everywhere(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a), slice(None)))


def exchanges_the_rows(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return patches(net, module, row_b, row_a, place)


def leaves_a_hook(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> Any:
    module.register_forward_hook(put_in(get_output(net, module, row_a), place))
    return net(row_b)


def patches_something_else(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a).flip(-1), place))


RIGHT: dict[str, Any] = {
    "13.1": 0.5,
    "13.2": "4",
    "13.3": torch.tensor(0),
    "13.4": keeps_head,
    "13.5": patches,
}
WRONG: dict[str, list[Any]] = {
    "13.1": [1, 0, 1 / 3, 7],
    "13.2": [3, 5, 13, 12, 8],
    "13.3": [1, 2, 3, 7],
    "13.4": [
        switches_head_off,
        writes_into_the_output,
        returns_one_head,
        keeps_a_place,
        lambda head: None,
        lambda head: 5,
        lambda head: lambda module, args, fetched: fetched * 1,
        lambda head: lambda module, args, fetched: fetched * 0,
        lambda head: lambda fetched: fetched,
        raises,
    ],
    "13.5": [
        patches_everywhere,
        exchanges_the_rows,
        leaves_a_hook,
        patches_something_else,
        lambda net, module, row_a, row_b, place: None,
        lambda net, module, row_a, row_b, place: net(row_a),
        lambda net, module, row_a, row_b, place: net(row_b),
        raises,
    ],
}
