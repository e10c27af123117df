"""torch.nn.Module.register_backward_hook

The legacy hook (deprecated): calls a function after one node of the graph has computed, the node of the first output
tensor.
"""

import torch


class Product(torch.nn.Module):
    def forward(self, a, b, c):
        return (a * b) * c


def make_inputs():
    return [torch.tensor(value, requires_grad=True) for value in (2.0, 3.0, 4.0)]


# %% when order
# When the last node of the module has computed, not when the whole module has.
layer = Product()
layer.register_backward_hook(lambda module, grad_input, grad_output: print("legacy hook"))
a, b, c = make_inputs()
a.register_hook(lambda grad: print("a"))
c.register_hook(lambda grad: print("c"))
layer(a, b, c).backward()

# %% arguments one_node
# The gradients of the inputs of that node: two numbers here, for a module with three inputs.
layer = Product()
layer.register_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output))
layer(*make_inputs()).backward()

# %% arguments linear
# For a Linear layer with a bias: the bias, the input, and the weight transposed.
layer = torch.nn.Linear(3, 2)
layer.register_backward_hook(lambda module, grad_input, grad_output: print([grad.shape for grad in grad_input]))
layer(torch.ones(4, 3, requires_grad=True)).sum().backward()

# %% arguments linear_3d
# The same with an input of three dimensions: only the gradient of a view.
layer = torch.nn.Linear(3, 2)
layer.register_backward_hook(lambda module, grad_input, grad_output: print([grad.shape for grad in grad_input]))
layer(torch.ones(5, 4, 3, requires_grad=True)).sum().backward()

# %% arguments linear_3d_no_bias
# And without a bias.
layer = torch.nn.Linear(3, 2, bias=False)
layer.register_backward_hook(lambda module, grad_input, grad_output: print([grad.shape for grad in grad_input]))
layer(torch.ones(5, 4, 3, requires_grad=True)).sum().backward()

# %% changes return_value
# What it returns replaces the gradients of the inputs of that node.
layer = Product()
layer.register_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10, grad_input[1]))
a, b, c = make_inputs()
layer(a, b, c).backward()
print(a.grad, b.grad, c.grad)


# %% silent other_output
# It sits on the node of the first output: a pass from the second output does not call it.
class Two(torch.nn.Module):
    def forward(self, a, b):
        return a * 2, b * 3


layer = Two()
layer.register_backward_hook(lambda module, grad_input, grad_output: print("legacy hook"))
a, b, c = make_inputs()
layer(a, b)[1].backward()
print("b.grad", b.grad)

# %% silent forward_called
# `layer.forward(…)` passes by all hooks.
layer = Product()
layer.register_backward_hook(lambda module, grad_input, grad_output: print("legacy hook"))
a, b, c = make_inputs()
layer.forward(a, b, c).backward()
print("a.grad", a.grad)

# %% also full_after_legacy
# Legacy and full backward hooks cannot be on one module.
layer = Product()
layer.register_backward_hook(lambda module, grad_input, grad_output: None)
layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)

# %% also full_after_removed
# Not even when the legacy hook was removed.
layer = Product()
layer.register_backward_hook(lambda module, grad_input, grad_output: None).remove()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
