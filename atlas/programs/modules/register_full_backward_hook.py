"""torch.nn.Module.register_full_backward_hook

Calls a function when backward has gone through a module and the gradients of its inputs are there.
"""

import torch


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# When the gradients of the inputs are there: after the inner modules, before the tensor hook of the input.
model = torch.nn.Sequential(make_layer(), make_layer())
model.register_full_backward_hook(lambda module, grad_input, grad_output: print("container"))
model[0].register_full_backward_hook(lambda module, grad_input, grad_output: print("first layer"))
model[1].register_full_backward_hook(lambda module, grad_input, grad_output: print("second layer"))
x = torch.ones(1, 1, requires_grad=True)
x.register_hook(lambda grad: print("input"))
model(x).sum().backward()

# %% when weight
# The weight's own hook and its `.grad` may come first.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook", module.weight.grad))
layer.weight.register_hook(lambda grad: print("weight", grad))
layer(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% when input_without_gradient
# No input requires a gradient (the first layer of a network): it fires as soon as the gradient of the output is
# there.
model = torch.nn.Sequential(make_layer(), make_layer())
model.register_full_backward_hook(lambda module, grad_input, grad_output: print("container", grad_input))
model[0].register_full_backward_hook(lambda module, grad_input, grad_output: print("first layer", grad_input))
model[1].register_full_backward_hook(lambda module, grad_input, grad_output: print("second layer", grad_input))
model(torch.ones(1, 1)).sum().backward()

# %% when shared_module
# A module that is called twice fires once for each call, the last call first.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
layer(layer(torch.ones(1, 1, requires_grad=True))).sum().backward()

# %% arguments inputs_and_outputs
# The module, a tuple for its positional inputs, and a tuple for its outputs.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output))
layer(torch.ones(2, 1, requires_grad=True)).sum().backward()


# %% arguments second_input
# A tensor that requires no gradient, next to one that does: zeros. A number: None.
class Add(torch.nn.Module):
    def forward(self, x, y, number):
        return x * 2 + y * number


layer = Add()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input))
layer(torch.ones(1, requires_grad=True), torch.ones(1), 5).backward()

# %% arguments keyword_input
# An input that is passed by keyword does not count: the tuple is empty, and the warning speaks of inputs without
# gradients.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output))
layer(input=torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% changes return_value
# What it returns replaces the gradients of the inputs; the weight has its gradient already.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
x = torch.ones(1, 1, requires_grad=True)
layer(x).sum().backward()
print("x.grad", x.grad, "weight.grad", layer.weight.grad)

# %% changes both_returned
# It cannot replace the gradients of the outputs.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input, grad_output))
layer(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% changes without_gradient
# Where no input requires a gradient it must return None.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: grad_output)
layer(torch.ones(1, 1)).sum().backward()

# %% changes in_place
# An edit of grad_input in place works.
layer = make_layer()


def edit(module, grad_input, grad_output):
    grad_input[0].mul_(10)


layer.register_full_backward_hook(edit)
x = torch.ones(1, 1, requires_grad=True)
layer(x).sum().backward()
print("x.grad", x.grad)


# %% silent dict_output
# The output is hidden in a dict: the hook does not fire, and a warning appears in forward.
class Named(torch.nn.Module):
    def forward(self, x):
        return {"y": x * 3}


layer = Named()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook"))
layer(torch.ones(1, requires_grad=True))["y"].backward()


# %% silent nested_tuple
# The output is in a tuple inside a tuple: the hook does not fire, without a warning.
class Nested(torch.nn.Module):
    def forward(self, x):
        return (x * 3, (x * 4,))


layer = Nested()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook"))
layer(torch.ones(1, requires_grad=True))[1][0].backward()

# %% silent forward_called
# `layer.forward(x)` passes by all hooks.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook"))
layer.forward(torch.ones(1, 1, requires_grad=True)).sum().backward()
print("weight.grad", layer.weight.grad)

# %% silent weight_only
# `torch.autograd.grad(…, layer.weight)` does not need the gradient of the input.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook"))
x = torch.ones(1, 1, requires_grad=True)
print(torch.autograd.grad(layer(x).sum(), layer.weight))

# %% also in_place_after
# The output is a view that the hook made: an operation in place on it fails.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
layer(torch.ones(1, 1, requires_grad=True)).relu_()

# %% also no_user_hook_left
# A hook that is removed between forward and backward fires all the same.
layer = make_layer()
handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module hook"))
y = layer(torch.ones(1, 1))
handle.remove()
y.sum().backward()
print("weight.grad", layer.weight.grad)

# %% also double_backward
# With `create_graph=True`, a second pass through the gradient of the input.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output))
x = torch.ones(1, 1, requires_grad=True)
(g,) = torch.autograd.grad((layer(x) ** 2).sum(), x, create_graph=True)
print("second pass")
g.sum().backward()
