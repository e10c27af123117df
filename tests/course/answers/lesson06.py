"""Right and wrong answers to what lesson 06 asks."""

import contextlib
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


def extract(net: Any, layer: Any, batches: Any) -> torch.Tensor:
    """Collect features and leave no trace."""
    rows: list[torch.Tensor] = []
    was_training = net.training
    net.eval()
    handle = layer.register_forward_hook(lambda module, args, output: rows.append(output.detach().clone().flatten(1)))
    try:
        for batch in batches:
            net(batch)
    finally:
        handle.remove()
        net.train(was_training)
    return torch.cat(rows)


def extracts(
    *,
    copy: bool = True,
    cut: bool = True,
    evaluate: bool = True,
    restore: bool = True,
    remove: bool = True,
    last: int = 0,
) -> Callable[..., Any]:
    """A function that collects features without some of what makes it right; it does not expect errors."""

    def answer(net: Any, layer: Any, batches: Any) -> torch.Tensor:
        rows: list[torch.Tensor] = []

        def hook(module: Any, args: Any, output: Any) -> None:
            kept = output.detach() if cut else output
            rows.append((kept.clone() if copy else kept).flatten(1))

        net.train(not evaluate)
        handle = layer.register_forward_hook(hook)
        for batch in batches:
            net(batch)
        if remove:
            handle.remove()
        net.train(restore)
        return torch.cat(rows[-last:])

    return answer


def hides_errors(net: Any, layer: Any, batches: Any) -> Any:
    with contextlib.suppress(ValueError):
        return extract(net, layer, batches)


def freezes(net: Any, layer: Any, batches: Any) -> torch.Tensor:
    net.requires_grad_(requires_grad=False)
    return extract(net, layer, batches)


RIGHT: dict[str, Any] = {
    "06.1": 3,
    "06.2": torch.tensor(2.2),
    "06.3": 0,
    "06.4": 16 / 255,
    "06.5": torch.tensor(1.0),
    "06.6": torch.tensor([4.0]),
    "06.7": keeps_outputs(lambda output: output.detach().clone()),
    "06.8": 6,
    "06.9": extract,
}
WRONG: dict[str, list[Any]] = {
    "06.1": [5, 2, 1, 0, 4],
    "06.2": [1, 1.2, 5],
    "06.3": [-3, 5, "many"],
    "06.4": [16, 1, 255, 5],
    "06.5": [3, 0, 2, 5],
    "06.6": [1, 2, 8, 5],
    "06.7": [
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
    "06.8": [3, 2, 1, 9, 7],
    "06.9": [
        extracts(last=1),
        extracts(copy=False),
        extracts(evaluate=False),
        extracts(cut=False),
        extracts(remove=False),
        extracts(restore=False),
        extracts(),
        freezes,
        hides_errors,
        lambda net, layer, batches: [extract(net, layer, batches)],
        lambda net, layer, batches: extract(net, layer, batches)[:, :1],
        raises,
    ],
}
