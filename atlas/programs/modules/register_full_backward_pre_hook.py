"""torch.nn.Module.register_full_backward_pre_hook

Calls a function when the gradients of a module's outputs are there, before backward goes through the module.
"""

import torch


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# After the tensor hook of the output, before anything inside the module; the full backward hook comes last.
layer = make_layer()
layer.register_full_backward_pre_hook(lambda module, grad_output: print("module pre-hook"))
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook"))
layer.weight.register_hook(lambda grad: print("weight"))
x = torch.ones(1, 1, requires_grad=True)
x.register_hook(lambda grad: print("input"))
y = layer(x)
y.register_hook(lambda grad: print("output"))
y.sum().backward()

# %% arguments grad_output
# The module and a tuple of the gradients of its outputs.
layer = make_layer()
layer.register_full_backward_pre_hook(lambda module, grad_output: print(type(module).__name__, grad_output))
layer(torch.ones(2, 1, requires_grad=True)).sum().backward()

# %% changes return_value
# What it returns replaces the gradients of the outputs, for everything inside the module.
layer = make_layer()
layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
x = torch.ones(1, 1, requires_grad=True)
layer(x).sum().backward()
print("x.grad", x.grad, "weight.grad", layer.weight.grad)

# %% changes bare_tensor
# A tensor instead of a tuple is taken for a tuple: its rows, here one, count as the gradients.
layer = make_layer()
layer.register_full_backward_pre_hook(lambda module, grad_output: grad_output[0] * 10)
layer(torch.ones(1, 1, requires_grad=True)).sum().backward()
print("weight.grad", layer.weight.grad)

# %% changes wrong_count
# A tuple of another length is refused.
layer = make_layer()
layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0], grad_output[0]))
layer(torch.ones(1, 1, requires_grad=True)).sum().backward()


# %% silent dict_output
# The output is hidden in a dict: the hook does not fire, and a warning appears in forward.
class Named(torch.nn.Module):
    def forward(self, x):
        return {"y": x * 3}


layer = Named()
layer.register_full_backward_pre_hook(lambda module, grad_output: print("module pre-hook"))
layer(torch.ones(1, requires_grad=True))["y"].backward()

# %% silent no_graph
# No parameter and no input requires a gradient, so there is no pass; here the loss comes from elsewhere.
layer = make_layer().requires_grad_(False)
layer.register_full_backward_pre_hook(lambda module, grad_output: print("module pre-hook"))
w = torch.ones(1, 1, requires_grad=True)
(layer(torch.ones(1, 1)) * w).sum().backward()
print("w.grad", w.grad)

# %% also input_without_gradient
# It alone is on the module, and the input requires no gradient (the first layer of a network).
layer = make_layer()
layer.register_full_backward_pre_hook(lambda module, grad_output: print("module pre-hook"))
layer(torch.ones(1, 1)).sum().backward()

# %% also in_place_edit
# An edit of the argument in place writes into a tensor that others may hold: here the caller's.
layer = make_layer()


def edit(module, grad_output):
    grad_output[0].mul_(10)


layer.register_full_backward_pre_hook(edit)
given = torch.ones(1, 1)
layer(torch.ones(1, 1, requires_grad=True)).backward(given)
print("given", given, "weight.grad", layer.weight.grad)
