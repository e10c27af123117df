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


def first_tensor(output: Any) -> torch.Tensor:
    return output if isinstance(output, torch.Tensor) else output[0]


def extracts(
    *,
    take: Callable[[Any], Any] = first_tensor,
    keep: Callable[[torch.Tensor], Any] = lambda output: output.detach().clone(),
    join: Callable[[list[Any]], Any] = torch.cat,
    evaluate: bool = True,
    remove: bool = True,
    restore: Callable[[Any, bool], Any] = lambda model, was_training: model.train(was_training),
    remove_at_error: bool = True,
    restore_at_error: bool = True,
) -> Callable[..., Any]:
    """A function that collects features, right in all that is not chosen otherwise."""

    def extract(model: Any, layer: Any, batches: Any) -> Any:
        features: list[Any] = []
        was_training = model.training
        model.train(not evaluate)
        handle = layer.register_forward_hook(lambda module, args, output: features.append(keep(take(output))))
        try:
            for batch in batches:
                model(batch)
        except ValueError:
            if remove_at_error:
                handle.remove()
            if restore_at_error:
                restore(model, was_training)
            raise
        if remove:
            handle.remove()
        restore(model, was_training)
        return join(features)

    return extract


def hides_errors(model: Any, layer: Any, batches: Any) -> Any:
    with contextlib.suppress(ValueError):
        return extracts()(model, layer, batches)


def freezes(model: Any, layer: Any, batches: Any) -> Any:
    model.requires_grad_(requires_grad=False)
    return extracts()(model, layer, batches)


def hooks_the_input(model: Any, layer: Any, batches: Any) -> torch.Tensor:
    given: list[torch.Tensor] = []
    with layer.register_forward_pre_hook(lambda module, args: given.append(args[0].clone())):
        for batch in batches:
            model(batch)
    return torch.cat(given)


def forgets_the_hook(model: Any, layer: Any, batches: Any) -> torch.Tensor:
    return torch.cat([model(batch) for batch in batches])[:, :1]


def keeps_each_mode(model: Any, layer: Any, batches: Any) -> Any:
    modes = {module: module.training for module in model.modules()}
    try:
        return extracts()(model, layer, batches)
    finally:
        for module, training in modes.items():
            module.training = training


RIGHT: dict[str, Any] = {
    "06.1": 3,
    "06.2": torch.tensor(2.2),
    "06.3": torch.tensor([4.0]),
    "06.4": 0,
    "06.5": "smaller",
    "06.6": keeps_outputs(lambda output: output.detach().clone()),
    "06.7": keeps_each_mode,
}
WRONG: dict[str, list[Any]] = {
    "06.1": [5, 2, 1, 0, 4],
    "06.2": [1, 1.2, 5],
    "06.3": [1, 2, 8, 5],
    "06.4": [-3, 5, "many"],
    "06.5": ["larger", "the same", "black"],
    "06.6": [
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
    "06.7": [
        extracts(join=lambda features: None),
        extracts(join=lambda features: features),
        extracts(join=lambda features: dict(enumerate(features))),
        extracts(join=lambda features: torch.cat(features).numpy()),
        extracts(join=lambda features: features[-1]),
        extracts(join=lambda features: features[0]),
        extracts(keep=lambda output: output.detach().clone().flatten(1)),
        extracts(join=lambda features: torch.cat([one.mean(0, keepdim=True) for one in features])),
        extracts(keep=lambda output: output.detach()),
        hooks_the_input,
        extracts(evaluate=False),
        extracts(keep=lambda output: output.clone()),
        extracts(remove=False),
        extracts(restore=lambda model, was_training: None),
        freezes,
        extracts(take=lambda output: output),
        extracts(take=lambda output: output if isinstance(output, torch.Tensor) else output[1][0]),
        extracts(restore=lambda model, was_training: model.train()),
        hides_errors,
        extracts(remove_at_error=False),
        extracts(restore_at_error=False),
        forgets_the_hook,
        raises,
    ],
}
