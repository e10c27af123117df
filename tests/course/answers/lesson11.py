"""Right and wrong answers to what lesson 11 asks."""

from typing import Any

import torch

from tests.course.answers.common import raises


def clips(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.clamp_(-1, 1)


def clips_the_parameter(grad: torch.Tensor) -> None:
    grad.clamp_(-1, 1)


def clips_one_side(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.clamp_(max=1)


def clips_a_copy(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.clamp(-1, 1)


def throws_away(param: torch.Tensor) -> None:
    param.grad = None


def makes_zero(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad.zero_()


def clips_to_zero(param: torch.Tensor) -> None:
    assert param.grad is not None
    param.grad[param.grad.abs() > 1] = 0


def renames(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")


def forgets_the_prefix(module: Any, state_dict: Any, *rest: Any) -> None:
    state_dict["weight"] = state_dict.pop("old")


def leaves_the_old_name(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    state_dict[prefix + "weight"] = state_dict[prefix + "old"]


def returns_another(module: Any, state_dict: Any, prefix: str, *rest: Any) -> Any:
    return {prefix + "weight": state_dict[prefix + "old"]}


def puts_something_else(module: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "old") * 0


def renames_too_much(module: Any, state_dict: Any, *rest: Any) -> None:
    for key in list(state_dict):
        state_dict[key.replace("old", "weight")] = state_dict.pop(key)


def trains(model: Any, rate: float) -> Any:
    def step(param: torch.Tensor) -> None:
        param -= rate * param.grad  # type: ignore[operator]
        param.grad = None

    return register(model, step)


def register(model: Any, hook: Any) -> Any:
    return [p.register_post_accumulate_grad_hook(hook) for p in model.parameters() if p.requires_grad]


def keeps_the_gradients(model: Any, rate: float) -> Any:
    def step(param: torch.Tensor) -> None:
        param -= rate * param.grad  # type: ignore[operator]

    return register(model, step)


def only_frees(model: Any, rate: float) -> Any:
    return register(model, throws_away)


def forgets_the_rate(model: Any, rate: float) -> Any:
    return trains(model, 1.0)


def returns_nothing(model: Any, rate: float) -> None:
    trains(model, rate)


def returns_one_handle_only(model: Any, rate: float) -> Any:
    return trains(model, rate)[:1]


def adds(model: Any, rate: float) -> Any:
    return trains(model, -rate)


def trains_the_weights_only(model: Any, rate: float) -> Any:
    def step(param: torch.Tensor) -> None:
        param -= rate * param.grad  # type: ignore[operator]
        param.grad = None

    return [p.register_post_accumulate_grad_hook(step) for p in model.parameters() if p.requires_grad and p.dim() == 2]


def uses_tensor_hooks(model: Any, rate: float) -> Any:
    def make_hook(param: Any) -> Any:
        def step(grad: torch.Tensor) -> None:
            param.data -= rate * grad

        return step

    return [p.register_hook(make_hook(p)) for p in model.parameters() if p.requires_grad]


def takes_them_off(model: Any, rate: float) -> Any:
    return [handle.remove() for handle in trains(model, rate)]


def forgets_the_frozen(model: Any, rate: float) -> Any:
    for param in model.parameters():
        param.register_post_accumulate_grad_hook(lambda p: None).remove()
    return trains(model, rate)


RIGHT: dict[str, Any] = {
    "11.1": 5,
    "11.2": "1",
    "11.3": torch.tensor(30.0),
    "11.4": "A B D F H C G E",
    "11.5": clips,
    "11.6": renames,
    "11.7": trains,
}
WRONG: dict[str, list[Any]] = {
    "11.1": [1, 3, 15, 0, 7],
    "11.2": [2, 0, 5],
    "11.3": [3, 20, 2, 6, 10, 60, 300, 600, 5],
    "11.4": [
        "A B C",
        "BADFHCGE",
        ["D", "A", "B", "F", "H", "C", "G", "E"],
        "ABFDHCGE",
        "ABCDFHGE",
        "ABDHFCGE",
        "ABDFHGCE",
        "ABDFHCEG",
        "ABDCFHGE",
    ],
    "11.5": [
        clips_the_parameter,
        lambda param: param.grad.clamp_(-1, 1),
        clips_a_copy,
        clips_one_side,
        throws_away,
        makes_zero,
        clips_to_zero,
        raises,
    ],
    "11.6": [
        forgets_the_prefix,
        renames_too_much,
        leaves_the_old_name,
        returns_another,
        puts_something_else,
        lambda module, state_dict: None,
        raises,
    ],
    "11.7": [
        only_frees,
        keeps_the_gradients,
        forgets_the_rate,
        adds,
        trains_the_weights_only,
        uses_tensor_hooks,
        takes_them_off,
        returns_nothing,
        returns_one_handle_only,
        forgets_the_frozen,
        raises,
    ],
}
