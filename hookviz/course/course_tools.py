"""The course's own version of each tool that students build, for those who have not built it yet."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

Hook = Callable[..., Any]


def find_silent(net: nn.Module, loss: Tensor) -> list[str]:
    """Run backward; return the names of the parameters that ask for a gradient and got none."""
    net.zero_grad()
    torch.autograd.backward(loss)
    return [name for name, parameter in net.named_parameters() if parameter.requires_grad and parameter.grad is None]


def note(tensor: Tensor, log: list[float]) -> RemovableHandle:
    """Write the size of each gradient of a tensor into ``log``: its largest absolute value; return the handle."""

    def write_down(grad: Tensor) -> None:
        log.append(grad.abs().max().item())

    return tensor.register_hook(write_down)  # type: ignore[no-any-return, no-untyped-call]


def find_tensors(output: Any) -> list[Tensor]:
    """List all tensors in the output of a module, detached; they may stand in tuples, lists and dicts."""
    if isinstance(output, Tensor):
        return [output.detach()]
    if isinstance(output, dict):
        output = list(output.values())
    if not isinstance(output, tuple | list):
        return []
    return [tensor for part in output for tensor in find_tensors(part)]


def watch(model: nn.Module) -> dict[str, float]:
    """Return a dict that holds, after each backward pass, the norm of the gradient that came in at each child."""
    norms: dict[str, float] = {}
    names = {module: name for name, module in model.named_children()}

    def measure(module: nn.Module, grad_input: Any, grad_output: tuple[Tensor, ...]) -> None:
        norms[names[module]] = grad_output[0].norm().item()

    for module in names:
        module.register_full_backward_hook(measure)
    return norms


class HookGroup:
    """Hooks that all end with one ``with`` block."""

    def __init__(self) -> None:
        self.handles: list[RemovableHandle] = []

    def add(self, module: nn.Module, hook: Hook) -> None:
        """Register a forward hook on a module."""
        self.handles.append(module.register_forward_hook(hook))

    def __enter__(self) -> "HookGroup":
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()


def extract(model: nn.Module, layer: nn.Module, batches: Iterable[Tensor]) -> Tensor:
    """Return what ``layer`` computes for all batches, on the CPU. Leave the model as it was."""
    features: list[Tensor] = []

    def hook(module: nn.Module, args: Any, output: Any) -> None:
        first = find_tensors(output)[0]
        features.append(first.clone().cpu())

    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad(), layer.register_forward_hook(hook):
            for batch in batches:
                model(batch)
    finally:
        for module, training in modes.items():
            module.training = training
    return torch.cat(features)


def find_nan(model: nn.Module, x: Tensor) -> str:
    """Run a pass; return the path of the innermost module that made its first NaN, or ``"none"``."""
    paths = {module: path for path, module in model.named_modules()}
    culprits: list[str] = []

    def look(module: nn.Module, grad_input: tuple[Tensor | None, ...], grad_output: tuple[Tensor, ...]) -> None:
        came_in_good = not grad_output[0].isnan().any()
        made_nan = any(grad is not None and bool(grad.isnan().any()) for grad in grad_input)
        if came_in_good and made_nan:
            culprits.append(paths[module])

    handles = [module.register_full_backward_hook(look) for module in paths]
    try:
        torch.autograd.backward(model(x).sum())
    finally:
        for handle in handles:
            handle.remove()
    return culprits[0] if culprits else "none"


def stand_still(net: nn.Module, training: Callable[[nn.Module], Any]) -> list[str]:
    """Run a training; return the names of the parameters that none of its steps has moved."""
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    moved: set[str] = set()

    def compare(optimizer: Any, args: Any, kwargs: Any) -> None:
        moved.update(name for name, parameter in net.named_parameters() if not torch.equal(parameter, before[name]))

    with register_optimizer_step_post_hook(compare):
        training(net)
    return [name for name in before if name not in moved]


def patch_run(net: nn.Module, module: nn.Module, row_a: Tensor, row_b: Tensor, place: int) -> Any:
    """Run ``net`` on ``row_b``, with the output of ``module`` at ``place`` from a run on ``row_a``."""
    kept: list[Tensor] = []

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        kept.append(output)

    def put_in(module: nn.Module, args: Any, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[:, place] = kept[0][:, place]
        return changed

    with module.register_forward_hook(keep):
        net(row_a)
    with module.register_forward_hook(put_in):
        return net(row_b)


def forgotten_eval(net: nn.Module, run: Callable[[nn.Module], Any]) -> list[str]:
    """Run ``run(net)``; name the dropout and batch-norm layers that a call without gradients met in training mode."""
    kinds = (nn.Dropout, nn.BatchNorm1d, nn.BatchNorm2d)
    layers = {name: module for name, module in net.named_modules() if isinstance(module, kinds)}
    in_training: set[nn.Module] = set()

    def look(module: nn.Module, args: Any) -> None:
        if module.training and not torch.is_grad_enabled():
            in_training.add(module)

    handles = [module.register_forward_pre_hook(look) for module in layers.values()]
    try:
        run(net)
    finally:
        for handle in handles:
            handle.remove()
    return [name for name, module in layers.items() if module in in_training]
