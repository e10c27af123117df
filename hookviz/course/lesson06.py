"""What lesson 06 asks."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import Found, Judge, no_function, number, rounded, tensors_in, tried


class _SaveValues(dict[str, Any]):
    """What the lesson's class keeps of a layer."""

    def __init__(self, layer: nn.Module) -> None:
        layer.register_forward_hook(self._on_forward)
        layer.register_full_backward_hook(self._on_backward)

    def _on_forward(self, module: nn.Module, args: Any, output: Any) -> None:
        self.update(module=module, input=args, output=output)

    def _on_backward(self, module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        self.update(grad_input=grad_input, grad_output=grad_output)


class _Double(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def _kept_by_the_call() -> float:
    """How many things are kept after a call and before backward."""
    layer = nn.Linear(1, 1)
    saved = _SaveValues(layer)
    layer(torch.ones(1))
    return float(len(saved))


def _changed_later() -> float:
    """The first number of a stored input, after 1.2 was added to the input in place."""
    layer, x = nn.Linear(2, 1), torch.ones(2)
    saved = _SaveValues(layer)
    layer(x)
    x += 1.2
    stored: torch.Tensor = saved["input"][0]
    return round(stored[0].item(), 6)


def _smallest_stored() -> float:
    """The smallest of three numbers that were stored by way of ``detach().cpu()``, before a ReLU in place."""
    kept: list[torch.Tensor] = []
    layer = nn.Identity()
    layer.register_forward_hook(lambda module, args, output: kept.append(output.detach().cpu()))
    nn.Sequential(layer, nn.ReLU(inplace=True))(torch.tensor([-3.0, -1.0, 2.0]))
    return kept[0].min().item()


def _shared_gradient() -> float:
    """The ``grad_output`` that is kept of a module that doubles, called three times."""
    double = _Double()
    saved = _SaveValues(double)
    torch.autograd.backward(nn.Sequential(double, double, double)(torch.tensor(1.0, requires_grad=True)))
    gradient: torch.Tensor = saved["grad_output"][0]
    return gradient.item()


class _Block(nn.Sequential):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summed: torch.Tensor = self[0](super().forward(x) + x)  # type: ignore[no-untyped-call]
        return summed


def _shared_outputs() -> float:
    """How many outputs a list holds after three passes through a block that calls its ReLU twice."""
    block, outputs = _Block(nn.ReLU()), []
    block[0].register_forward_hook(lambda module, args, output: outputs.append(output))
    for _ in range(3):
        block(torch.ones(1))
    return float(len(outputs))


def _keeping(answer: Any) -> Found:
    """Put the learner's hook on a layer, write over each of its outputs in place, and look at what the list holds."""
    if fault := no_function(answer):
        return fault
    layer = nn.Linear(1, 2, bias=False)
    layer.weight = nn.Parameter(torch.tensor([[-3.0], [2.0]]))
    kept, error = tried(answer, layer)
    if error:
        return Found("raised", error)
    if not isinstance(kept, list):
        return Found("no_list")
    returned, error = tried(lambda: [layer(torch.tensor([number])).relu_() for number in (1.0, 10.0)])
    if error:
        return Found("raised", error)
    return _replaced(returned) or _list_of_two(kept)


def _replaced(returned: list[Any]) -> Found | None:
    """That the learner's hook has put something else in the place of the layer's outputs."""
    tensors = tensors_in(tuple(returned))
    if [tensor.tolist() for tensor in tensors] == [[0, 2], [0, 20]] and all(tensor.requires_grad for tensor in tensors):
        return None
    return Found("replaced")


def _list_of_two(kept: list[Any]) -> Found:
    if len(kept) != 2:
        return Found("count", str(len(kept)))
    if not all(isinstance(output, torch.Tensor) for output in kept):
        return Found("no_tensor")
    graph = any(output.requires_grad for output in kept)
    numbers = [output.tolist() for output in kept]
    if numbers == [[0, 2], [0, 20]]:
        return Found("as_it_is" if graph else "storage")
    if numbers != [[-3, 2], [-30, 20]]:
        return Found("other")
    return Found("graph" if graph else "right")


JUDGES: dict[str, Judge] = {
    "06.1": number(_kept_by_the_call, {5: "all", 2: "two", 1: "one", 0: "none_yet"}),
    "06.2": rounded(number(_changed_later, {1: "copy", 1.2: "step"})),
    "06.3": number(_smallest_stored, {-3: "computed", -1: "second", 2: "largest"}),
    "06.4": number(_shared_gradient, {1: "last", 2: "middle", 8: "sent"}),
    "06.5": _keeping,
    "06.6": number(_shared_outputs, {3: "once", 2: "one_pass", 1: "overwritten", 9: "all"}),
}
