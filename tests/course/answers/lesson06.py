"""Right and wrong answers to what lesson 06 asks."""

from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises

keeps = partial(
    changed,
    """
def keep_outputs(layer):
    kept = []
    layer.register_forward_hook(lambda module, args, output: kept.append(output.detach().clone()))
    return kept
""",
    "keep_outputs",
)
COPY, APPEND = "output.detach().clone()", "kept.append(output.detach().clone())"
extracts = partial(
    changed,
    """
import torch

def extract(model, layer, batches):
    features = []

    def keep(module, args, output):
        first = output if isinstance(output, torch.Tensor) else output[0]
        features.append(first.detach().clone())

    was_training = model.training
    model.eval()
    handle = layer.register_forward_hook(keep)
    try:
        for batch in batches:
            model(batch)
    finally:
        handle.remove()
        model.train(was_training)
    return torch.cat(features)
""",
    "extract",
)
RESULT = "torch.cat(features)"
RESTORE = "model.train(was_training)"


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
    "06.6": keeps(),
    "06.7": keeps_each_mode,
}
WRONG: dict[str, list[Any]] = {
    "06.1": [5, 2, 1, 0, 4],
    "06.2": [1, 1.2, 5],
    "06.3": [1, 2, 8, 5],
    "06.4": [-3, 5, "many"],
    "06.5": ["larger", "the same", "black"],
    "06.6": [
        keeps((COPY, "output")),
        keeps((COPY, "output.detach().cpu()")),
        keeps((COPY, "output.clone()")),
        keeps((COPY, "output.tolist()")),
        keeps((COPY, "output.detach() * 2")),
        keeps((COPY, "1 / 0")),
        keeps(("return kept", "return None")),
        keeps(("kept = []", "kept = [None]"), (APPEND, f"kept.__setitem__(0, {COPY})")),
        keeps((APPEND, f"{APPEND} or output.detach()")),
        raises,
    ],
    "06.7": [
        extracts((RESULT, "None")),
        extracts((RESULT, "features")),
        extracts((RESULT, "dict(enumerate(features))")),
        extracts((RESULT, "torch.cat(features).numpy()")),
        extracts((RESULT, "features[-1]")),
        extracts((RESULT, "features[0]")),
        extracts((RESULT, "torch.cat(features).flatten(1)")),
        extracts((RESULT, "torch.cat([one.mean(0, keepdim=True) for one in features])")),
        extracts((".detach().clone()", ".detach()")),
        hooks_the_input,
        extracts(("model.eval()", "model.train()")),
        extracts((".detach().clone()", ".clone()")),
        extracts(("handle.remove()", "pass")),
        extracts((RESTORE, "pass")),
        extracts(("model.eval()", "model.eval().requires_grad_(False)")),
        extracts(("output if isinstance(output, torch.Tensor) else output[0]", "output")),
        extracts(("else output[0]", "else output[1][0]")),
        extracts((RESTORE, "model.train()")),
        extracts(("finally:", "except ValueError:\n        return None\n    finally:")),
        extracts((f"handle.remove()\n        {RESTORE}", f"{RESTORE}\n    handle.remove()")),
        extracts((f"handle.remove()\n        {RESTORE}", f"handle.remove()\n    {RESTORE}")),
        forgets_the_hook,
        raises,
    ],
}
