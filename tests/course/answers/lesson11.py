"""Right and wrong answers to what lesson 11 asks."""

from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises

clips = partial(changed, "def clips(param):\n    param.grad.clamp_(-1, 1)", "clips")
renames = partial(
    changed,
    """
def renames(module, state_dict, prefix, *rest):
    state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")
""",
    "renames",
)
RENAME = 'state_dict[prefix + "weight"] = state_dict.pop(prefix + "old")'
trains = partial(
    changed,
    """
def trains(model, rate):
    def step(param):
        param -= rate * param.grad
        param.grad = None

    trained = [param for param in model.parameters() if param.requires_grad]
    return [param.register_post_accumulate_grad_hook(step) for param in trained]
""",
    "trains",
)
REGISTER = "param.register_post_accumulate_grad_hook(step)"

RIGHT: dict[str, Any] = {
    "11.1": 5,
    "11.2": "1",
    "11.3": torch.tensor(30.0),
    "11.4": "A B D F H C G E",
    "11.5": clips(),
    "11.6": renames(),
    "11.7": trains(),
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
        clips(("param.grad", "param")),
        lambda param: param.grad.clamp_(-1, 1),
        clips(("clamp_", "clamp")),
        clips(("clamp_(-1, 1)", "clamp_(max=1)")),
        clips((".clamp_(-1, 1)", " = None")),
        clips(("clamp_(-1, 1)", "zero_()")),
        clips((".clamp_(-1, 1)", "[param.grad.abs() > 1] = 0")),
        raises,
    ],
    "11.6": [
        renames((RENAME, 'state_dict["weight"] = state_dict.pop("old")')),
        renames(
            (RENAME, 'for key in [*state_dict]: state_dict[key.replace("old", "weight")] = state_dict.pop(key)'),
        ),
        renames(('.pop(prefix + "old")', '[prefix + "old"]')),
        renames((RENAME, 'return {prefix + "weight": state_dict[prefix + "old"]}')),
        renames((RENAME, f"{RENAME} * 0")),
        lambda module, state_dict: None,
        raises,
    ],
    "11.7": [
        trains(("param -= rate * param.grad", "pass")),
        trains(("param.grad = None", "pass")),
        trains(("rate * ", "")),
        trains(("-=", "+=")),
        trains(("if param.requires_grad", "if param.requires_grad and param.dim() == 2")),
        trains((REGISTER, "param.register_hook(lambda grad: None)")),
        trains((REGISTER, f"{REGISTER}.remove()")),
        trains(("return [", "[")),
        trains(("in trained]", "in trained][:1]")),
        trains((" if param.requires_grad", "")),
        raises,
    ],
}
