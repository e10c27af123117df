"""torch.nn.Module.register_forward_pre_hook

Calls a function before the `forward` of a module.
"""

import torch


class Triple(torch.nn.Module):
    def forward(self, x, scale=3):
        print("forward", x, scale)
        return x * scale


# %% when order
# When the module is called, before `forward`; several hooks run in the order in which they were registered.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: print("first"))
layer.register_forward_pre_hook(lambda module, args: print("second"))
layer.register_forward_pre_hook(lambda module, args: print("prepended"), prepend=True)
layer(torch.tensor(2.0))

# %% arguments positional
# The module and a tuple of the positional arguments; keyword arguments do not appear.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: print(type(module).__name__, args))
layer(torch.tensor(2.0), scale=5)

# %% arguments with_kwargs
# With `with_kwargs=True` also a dict of the keyword arguments.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args, kwargs: print(args, kwargs), with_kwargs=True)
layer(torch.tensor(2.0), scale=5)

# %% changes return_value
# A returned tuple replaces the arguments; a returned value that is no tuple becomes the only argument.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: (args[0] * 10, 5))
layer(torch.tensor(2.0))
layer.register_forward_pre_hook(lambda module, args: args[0] * 10)
layer(torch.tensor(2.0))

# %% changes return_list
# A list counts as one argument.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: [torch.tensor(1.0), 5])
layer(torch.tensor(2.0))

# %% changes with_kwargs
# With `with_kwargs=True` it returns a pair of both.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args, kwargs: (args, {"scale": 100}), with_kwargs=True)
layer(torch.tensor(2.0), scale=5)

# %% changes with_kwargs_wrong
# With `with_kwargs=True`, anything else is refused.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args, kwargs: args, with_kwargs=True)
layer(torch.tensor(2.0))

# %% changes in_place
# An edit in place changes the tensor of the caller.
layer = Triple()


def edit(module, args):
    args[0].mul_(10)


layer.register_forward_pre_hook(edit)
x = torch.tensor(2.0)
layer(x)
print("x", x)

# %% silent forward_called
# `layer.forward(x)` passes by all hooks.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: print("pre-hook"))
layer.forward(torch.tensor(2.0))

# %% silent functional
# A function of `torch.nn.functional` is not a module and calls no hooks.
relu = torch.nn.ReLU()
relu.register_forward_pre_hook(lambda module, args: print("pre-hook"))
print(torch.nn.functional.relu(torch.tensor(-2.0)))

# %% also exception
# An exception in it keeps `forward` from running.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: 1 / 0)
layer(torch.tensor(2.0))

# %% also no_grad
# Without gradients it fires all the same.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: print("pre-hook"))
with torch.inference_mode():
    layer(torch.tensor(2.0))
