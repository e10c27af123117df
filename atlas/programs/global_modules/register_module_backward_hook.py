"""torch.nn.modules.module.register_module_backward_hook

The legacy hook (deprecated) for every module: on the node of the first output tensor.
"""

import torch
from torch.nn.modules.module import register_module_backward_hook


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# When the last node of a module has computed. The container and its last module share this node; the module comes
# first.
model = torch.nn.Sequential(make_layer(), make_layer())
with register_module_backward_hook(lambda module, grad_input, grad_output: print(type(module).__name__)):
    model(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% arguments one_node
# The module, the gradients of the inputs of that node, and those of its outputs.
with register_module_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output)):
    layer = make_layer()
    layer(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% changes return_value
# What it returns replaces the gradients of the inputs of that node.
x = torch.ones(1, 1, requires_grad=True)
with register_module_backward_hook(lambda module, grad_input, grad_output: tuple(grad * 10 for grad in grad_input)):
    layer = make_layer()
    layer(x).sum().backward()
print("x.grad", x.grad)

# %% silent registered_late
# It is looked up in forward.
layer = make_layer()
y = layer(torch.ones(1, 1, requires_grad=True))
with register_module_backward_hook(lambda module, grad_input, grad_output: print("global")):
    y.sum().backward()
print("weight.grad", layer.weight.grad)

# %% also full_after_legacy
# After it, a global full backward hook is refused, also when it was removed.
register_module_backward_hook(lambda module, grad_input, grad_output: None).remove()
torch.nn.modules.module.register_module_full_backward_hook(lambda module, grad_input, grad_output: None)

# %% also module_gone
# The module is garbage when backward runs: the program keeps its output alone.
with register_module_backward_hook(lambda module, grad_input, grad_output: print(grad_input)):
    make_layer()(torch.ones(1, 1, requires_grad=True)).sum().backward()
