"""Right and wrong answers to what lesson 12 asks."""

from functools import partial
from typing import Any

import torch

from tests.course.answers.common import changed, raises


def with_hook(hook: Any) -> Any:
    """A function that returns its argument as a tensor of its own, with ``hook`` on it."""

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.view_as(x)
        y.register_hook(hook)
        return y

    return function


def on_x_itself(x: torch.Tensor) -> torch.Tensor:
    x.register_hook(lambda grad: grad.clamp(-1, 1))
    return x


sow_and_perturb = partial(
    changed,
    """
def sow_and_perturb(net, x):
    outputs = {}

    def hook_for(name):
        def keep(module, args, output):
            output.retain_grad()
            outputs[name] = output

        return keep

    handles = [layer.register_forward_hook(hook_for(name)) for name, layer in net.named_children()]
    net(x).sum().backward()
    for handle in handles:
        handle.remove()
    return outputs, {name: output.grad for name, output in outputs.items()}
""",
    "sow_and_perturb",
)


RIGHT: dict[str, Any] = {
    "12.1": -14,
    "12.2": torch.tensor(18.0),
    "12.3": 12.0,
    "12.4": lambda module, grad_input, grad_output: grad_output,
    "12.5": with_hook(lambda grad: grad.clamp(-1, 1)),
    "12.6": sow_and_perturb(("in outputs.items()", "in reversed(outputs.items())")),
}
WRONG: dict[str, list[Any]] = {
    "12.1": [14, -6, 6, -4, 5],
    "12.2": [12, 180, 120, 6, 5],
    "12.3": [6, 2, 3, 4, 5],
    "12.4": [
        lambda module, grad_input, grad_output: grad_output[0],
        lambda module, grad_input, grad_output: (grad_output, grad_output),
        lambda module, grad_input, grad_output: (*grad_output, None),
        lambda module, grad_input, grad_output: grad_input,
        lambda module, grad_input, grad_output: (torch.ones_like(grad_input[0]),),
        lambda module, grad_input, grad_output: (torch.ones(()),),
        lambda module, grad_input, grad_output: (grad_output[0] * 3,),
        lambda module, grad_input, grad_output: grad_input[0].copy_(grad_output[0]),
        lambda module, grad_input, grad_output: print(grad_output),
        lambda grad: grad,
        raises,
    ],
    "12.5": [
        lambda x: x.clamp(-1, 1),
        lambda x: x.detach(),
        lambda x: x.view_as(x),
        on_x_itself,
        with_hook(lambda grad: grad.clamp(max=1)),
        with_hook(lambda grad: grad.sign()),
        with_hook(lambda grad: grad * 0.1),
        lambda x: print(x),
        lambda x: x.clamp_(-1, 1),
        with_hook(raises),
    ],
    "12.6": [
        lambda net, x: net(x),
        lambda net, x: print(net(x)),
        sow_and_perturb(("return outputs,", 'return {"2": outputs["2"]},')),
        sow_and_perturb(("return outputs,", 'return {"0": x, "1": outputs["0"], "2": outputs["1"]},')),
        sow_and_perturb(("name: output.grad", "name: next(net[int(name)].parameters(), x)")),
        sow_and_perturb(("handle.remove()", "pass")),
        raises,
    ],
}
