"""torch.utils.checkpoint.checkpoint

Hooks inside a part of the network that is computed again in backward.
"""

import torch
from torch.utils.checkpoint import checkpoint


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% also forward_hook
# A forward hook fires again in backward, with the reentrant implementation and with the other.
layer = make_layer()
layer.register_forward_hook(lambda module, args, output: print("forward hook, grad mode", torch.is_grad_enabled()))
for reentrant in (True, False):
    print("use_reentrant", reentrant)
    y = checkpoint(layer, torch.ones(1, 1, requires_grad=True), use_reentrant=reentrant)
    y.sum().backward()

# %% also early_stop
# Two layers: the second computation stops as soon as it has what backward needs.
model = torch.nn.Sequential(make_layer(), make_layer())
model[0].register_forward_hook(lambda module, args, output: print("first layer"))
model[1].register_forward_hook(lambda module, args, output: print("second layer"))
model.register_forward_hook(lambda module, args, output: print("container"))
y = checkpoint(model, torch.ones(1, 1, requires_grad=True), use_reentrant=False)
print("forward is over")
y.sum().backward()

# %% also full_backward_hook
# A full backward hook fires once.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_input, grad_output))
for reentrant in (True, False):
    print("use_reentrant", reentrant)
    y = checkpoint(layer, torch.ones(1, 1, requires_grad=True), use_reentrant=reentrant)
    y.sum().backward()

# %% also weight_hook
# A tensor hook and a post-accumulate hook of the weight.
layer = make_layer()
layer.weight.register_hook(lambda grad: print("tensor hook", grad))
layer.weight.register_post_accumulate_grad_hook(lambda weight: print("post-accumulate", weight.grad))
for reentrant in (True, False):
    print("use_reentrant", reentrant)
    layer.weight.grad = None
    y = checkpoint(layer, torch.ones(1, 1, requires_grad=True), use_reentrant=reentrant)
    y.sum().backward()

# %% also no_input_gradient
# The reentrant implementation when no input requires a gradient.
layer = make_layer()
layer.weight.register_hook(lambda grad: print("tensor hook", grad))
y = checkpoint(layer, torch.ones(1, 1), use_reentrant=True)
print(y.requires_grad)


# %% also saved_tensors
# Hooks on saved tensors around it see what checkpoint saves, not what the layer saves.
def pack(tensor):
    print("pack", tensor.shape)
    return tensor


def unpack(packed):
    print("unpack", packed.shape)
    return packed


layer = make_layer()
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = checkpoint(layer, torch.ones(1, 1, requires_grad=True), use_reentrant=False)
y.sum().backward()

# %% also not_said
# Without `use_reentrant`.
checkpoint(make_layer(), torch.ones(1, 1, requires_grad=True))


# %% also decorator
# As a decorator.
@checkpoint(use_reentrant=False)
def double(x):
    print("computed")
    return x * 2


x = torch.ones(1, requires_grad=True)
double(x).exp().backward()

# %% also fewer_saved
# A hook that makes the second computation save less than the first: the error says what to do.
layer = make_layer()
calls = []


def cut(module, args, output):
    calls.append(1)
    return output.exp() if len(calls) == 1 else output.detach()


layer.register_forward_hook(cut)
y = checkpoint(layer, torch.ones(1, 1, requires_grad=True), use_reentrant=False)
y.sum().backward()

# %% also selective
# Selective checkpointing keeps the output of `mm`, of shape `[1, 3]`. Saved-tensor hooks around it do not see it.
from torch.utils.checkpoint import create_selective_checkpoint_contexts


def pack(tensor):
    print("pack", tensor.shape)
    return tensor


def keep(tensor):
    return tensor


def contexts():
    return create_selective_checkpoint_contexts([torch.ops.aten.mm.default])


x = torch.ones(1, 2, requires_grad=True)
w = torch.ones(2, 3, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, keep):
    y = checkpoint(lambda x: (x @ w).exp(), x, use_reentrant=False, context_fn=contexts)
y.sum().backward()
