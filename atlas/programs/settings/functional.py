"""torch.func.grad

Hooks inside functions that `torch.func` transforms (`grad`, `vmap`, `functional_call`).
"""

import torch
from torch.func import functional_call, grad, vmap


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% also forward_hook
# A forward hook under `grad`: it fires, and gets a wrapped tensor.
layer = make_layer()
layer.register_forward_hook(lambda module, args, output: print(torch._C._functorch.is_gradtrackingtensor(output)))
print(grad(lambda x: layer(x).sum())(torch.ones(1, 1)))


# %% also tensor_hook
# A tensor hook inside the function under `grad`.
def function(x):
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    return y * 4


print(grad(function)(torch.tensor(2.0)))

# %% also full_backward_hook
# A full backward hook under `grad`.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("full backward hook"))
print(grad(lambda x: layer(x).sum())(torch.ones(1, 1)))


# %% also vmap_tensor_hook
# A tensor hook inside the function under `vmap`.
def function(x):
    y = x * 3
    y.register_hook(lambda grad: print("hook", grad.shape))
    return y


x = torch.ones(2, requires_grad=True)
vmap(function)(x).sum().backward()
print("x.grad", x.grad)

# %% also vmap_full_backward_hook
# A full backward hook under `vmap`.
layer = make_layer()
layer.register_full_backward_hook(
    lambda module, grad_input, grad_output: print("full backward hook", grad_input[0].shape)
)
x = torch.ones(2, 1, requires_grad=True)
vmap(layer)(x).sum().backward()
print("x.grad", x.grad)

# %% also functional_call
# `functional_call` puts other tensors in the place of the parameters: hooks of the module fire, those of its
# parameters do not.
layer = make_layer()
layer.register_forward_hook(lambda module, args, output: print("forward hook"))
layer.weight.register_hook(lambda grad: print("hook of the weight"))
w = torch.full((1, 1), 5.0, requires_grad=True)
functional_call(layer, {"weight": w}, (torch.ones(1, 1),)).sum().backward()
print("w.grad", w.grad)


# %% also saved_tensors_hooks
# Saved-tensor hooks around `grad`.
def keep(tensor):
    return tensor


with torch.autograd.graph.saved_tensors_hooks(keep, keep):
    print(grad(torch.square)(torch.tensor(2.0)))
