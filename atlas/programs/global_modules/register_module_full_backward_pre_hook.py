"""torch.nn.modules.module.register_module_full_backward_pre_hook

Calls a function for every module when the gradients of its outputs are there.
"""

import torch
from torch.nn.modules.module import register_module_full_backward_pre_hook


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# For the container first, then for the modules inside, each time before the hooks of the module itself.
model = torch.nn.Sequential(make_layer())
model[0].register_full_backward_pre_hook(lambda module, grad_output: print("own pre-hook of the layer"))
with register_module_full_backward_pre_hook(lambda module, grad_output: print("global", type(module).__name__)):
    model(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% arguments grad_output
# The module and a tuple of the gradients of its outputs.
with register_module_full_backward_pre_hook(lambda module, grad_output: print(type(module).__name__, grad_output)):
    make_layer()(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% changes return_value
# What it returns replaces the gradients of the outputs.
layer = make_layer()
with register_module_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,)):
    layer(torch.ones(1, 1, requires_grad=True)).sum().backward()
print("weight.grad", layer.weight.grad)

# %% silent registered_late
# It is looked up in forward: one that is registered between forward and backward does not fire.
layer = make_layer()
y = layer(torch.ones(1, 1, requires_grad=True))
with register_module_full_backward_pre_hook(lambda module, grad_output: print("global")):
    y.sum().backward()
print("weight.grad", layer.weight.grad)

# %% also removed_early
# One that is removed between forward and backward fires all the same.
layer = make_layer()
with register_module_full_backward_pre_hook(lambda module, grad_output: print("global")):
    y = layer(torch.ones(1, 1, requires_grad=True))
y.sum().backward()

# %% also input_without_gradient
# No input requires a gradient.
with register_module_full_backward_pre_hook(lambda module, grad_output: print("global", grad_output)):
    make_layer()(torch.ones(1, 1)).sum().backward()
