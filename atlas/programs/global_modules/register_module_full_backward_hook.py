"""torch.nn.modules.module.register_module_full_backward_hook

Calls a function for every module when the gradients of its inputs are there.
"""

import torch
from torch.nn.modules.module import register_module_full_backward_hook


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# For the modules inside first, then for the container, each time before the hooks of the module itself.
model = torch.nn.Sequential(make_layer())
model[0].register_full_backward_hook(lambda module, grad_input, grad_output: print("own hook of the layer"))
with register_module_full_backward_hook(lambda module, grad_input, grad_output: print("global", type(module).__name__)):
    model(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% arguments inputs_and_outputs
# The module, a tuple for its positional inputs, and a tuple for its outputs.
with register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output)):
    make_layer()(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% changes return_value
# What it returns replaces the gradients of the inputs.
x = torch.ones(1, 1, requires_grad=True)
with register_module_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,)):
    make_layer()(x).sum().backward()
print("x.grad", x.grad)

# %% silent registered_late
# It is looked up in forward: one that is registered between forward and backward does not fire.
layer = make_layer()
y = layer(torch.ones(1, 1, requires_grad=True))
with register_module_full_backward_hook(lambda module, grad_input, grad_output: print("global")):
    y.sum().backward()
print("weight.grad", layer.weight.grad)

# %% also input_without_gradient
# No input requires a gradient.
with register_module_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output)):
    make_layer()(torch.ones(1, 1)).sum().backward()

# %% also twice
# A second one is accepted.
with register_module_full_backward_hook(lambda *given: print("first")):
    with register_module_full_backward_hook(lambda *given: print("second")):
        make_layer()(torch.ones(1, 1, requires_grad=True)).sum().backward()
