"""copy.deepcopy

What becomes of hooks when models and tensors are copied, pickled and saved.
"""

import copy
import io
import pickle

import torch


def say(module, args, output):
    print("forward hook")


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% also deepcopy_module
# A deep copy of a module has its module hooks, but not the hooks of its parameters.
layer = make_layer()
layer.register_forward_hook(say)
layer.weight.register_hook(lambda grad: print("hook of the weight"))
copied = copy.deepcopy(layer)
copied(torch.ones(1, 1)).sum().backward()
print("weight.grad", copied.weight.grad)

# %% also deepcopy_post_accumulate
# Nor has it the post-accumulate hooks of its parameters.
layer = make_layer()
layer.weight.register_post_accumulate_grad_hook(lambda weight: print("post-accumulate hook"))
copy.deepcopy(layer)(torch.ones(1, 1)).sum().backward()

# %% also deepcopy_tensor
# A deep copy of a leaf does not have its hooks.
a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: print("hook"))
(copy.deepcopy(a) * 3).backward()

# %% also save_tensor
# Saving a tensor with a hook warns; the hook is not saved.
a = torch.tensor(2.0, requires_grad=True)


def a_hook(grad):
    print("hook")


a.register_hook(a_hook)
file = io.BytesIO()
torch.save(a, file)
file.seek(0)
print(torch.load(file))

# %% also pickle_lambda
# A module with a lambda as a hook cannot be pickled.
layer = make_layer()
layer.register_forward_hook(lambda module, args, output: None)
pickle.dumps(layer)

# %% also to_dtype
# `layer.double()` changes the parameter in place of itself: its hook stays.
layer = make_layer()
layer.weight.register_hook(lambda grad: print("hook of the weight", grad.dtype))
layer.double()
layer(torch.ones(1, 1, dtype=torch.double)).sum().backward()
