"""torch.nn.Module.register_forward_hook

Calls a function after the `forward` of a module.
"""

import torch


class Triple(torch.nn.Module):
    def forward(self, x, scale=3):
        print("forward", x, scale)
        return x * scale


# %% when order
# When the module is called, after `forward`; several hooks run in the order in which they were registered.
layer = Triple()
layer.register_forward_hook(lambda module, args, output: print("first"))
layer.register_forward_hook(lambda module, args, output: print("second"))
layer.register_forward_hook(lambda module, args, output: print("prepended"), prepend=True)
layer(torch.tensor(2.0))

# %% when nested
# The hook of an inner module runs before that of the container.
model = torch.nn.Sequential(Triple())
model.register_forward_hook(lambda module, args, output: print("container"))
model[0].register_forward_hook(lambda module, args, output: print("inner"))
model(torch.tensor(2.0))

# %% arguments positional
# The module, a tuple of the positional arguments, and the output; keyword arguments do not appear.
layer = Triple()
layer.register_forward_hook(lambda module, args, output: print(type(module).__name__, args, output))
layer(torch.tensor(2.0), scale=5)

# %% arguments with_kwargs
# With `with_kwargs=True`, the dict of keyword arguments comes third.
layer = Triple()
layer.register_forward_hook(lambda module, args, kwargs, output: print(args, kwargs, output), with_kwargs=True)
layer(torch.tensor(2.0), scale=5)

# %% changes return_value
# A returned value that is not None replaces the output, whatever its type.
layer = Triple()
layer.register_forward_hook(lambda module, args, output: "anything")
print(layer(torch.tensor(2.0)))

# %% changes accidental
# So a hook that returns a detached output by accident cuts the graph.
layer = Triple()
layer.register_forward_hook(lambda module, args, output: output.detach())
x = torch.tensor(2.0, requires_grad=True)
print(layer(x).requires_grad)

# %% changes in_place
# An edit of the output in place changes it; where an operation saved the output, backward fails.
layer = torch.nn.Sigmoid()


def edit(module, args, output):
    output.mul_(10)


layer.register_forward_hook(edit)
x = torch.tensor(0.0, requires_grad=True)
y = layer(x)
print(y)
y.backward()

# %% silent forward_called
# `layer.forward(x)` passes by all hooks.
layer = Triple()
layer.register_forward_hook(lambda module, args, output: print("hook"))
layer.forward(torch.tensor(2.0))

# %% silent forward_raises
# When `forward` raises, it does not fire.
layer = torch.nn.Linear(2, 2)
layer.register_forward_hook(lambda module, args, output: print("hook"))
layer(torch.ones(3))

# %% silent fast_path
# In eval mode without gradients, a transformer layer computes without calling its inner modules: a hook on all
# modules sees the layer alone.
layer = torch.nn.TransformerEncoderLayer(4, 2, 4, batch_first=True).eval()
handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: print(type(module).__name__))
with handle, torch.no_grad():
    layer(torch.ones(1, 1, 4))

# %% also always_call
# With `always_call=True` it fires when `forward` raises, too; the output is None.
layer = torch.nn.Linear(2, 2)
layer.register_forward_hook(lambda module, args, output: print("hook", output), always_call=True)
layer(torch.ones(3))

# %% also always_call_pre_hook
# With `always_call=True`, when a pre-hook raises.
layer = Triple()
layer.register_forward_pre_hook(lambda module, args: 1 / 0)
layer.register_forward_hook(lambda module, args, output: print("hook", output), always_call=True)
layer(torch.tensor(2.0))

# %% also always_call_raises
# `forward` raises and the hook raises, too: the first exception goes on, a warning has the second.
layer = torch.nn.Linear(2, 2)
layer.register_forward_hook(lambda module, args, output: 1 / 0, always_call=True)
layer(torch.ones(3))

# %% also always_call_after_hook
# Another hook raises: the one with `always_call=True` fires once, not twice, if it already ran.
layer = Triple()
layer.register_forward_hook(lambda module, args, output: print("always"), always_call=True)
layer.register_forward_hook(lambda module, args, output: 1 / 0)
layer(torch.tensor(2.0))

# %% also no_fast_path
# A forward hook on an inner module makes the layer call its modules.
layer = torch.nn.TransformerEncoderLayer(4, 2, 4, batch_first=True).eval()
layer.linear1.register_forward_hook(lambda module, args, output: print("linear1"))
with torch.no_grad():
    layer(torch.ones(1, 1, 4))
