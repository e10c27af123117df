"""torch.nn.modules.module.register_module_forward_hook

Calls a function after the `forward` of every module.
"""

import torch
from torch.nn.modules.module import register_module_forward_hook


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# For the modules inside first, then for the container, each time before the hooks of the module itself.
model = torch.nn.Sequential(make_layer())
model[0].register_forward_hook(lambda module, args, output: print("own hook of the layer"))
with register_module_forward_hook(lambda module, args, output: print("global", type(module).__name__)):
    model(torch.ones(1, 1))

# %% arguments positional
# The module, a tuple of the positional arguments, and the output.
with register_module_forward_hook(lambda module, args, output: print(type(module).__name__, args, output.shape)):
    make_layer()(torch.ones(1, 1))

# %% arguments with_kwargs
# With `with_kwargs=True`, also the keyword arguments.
with register_module_forward_hook(lambda module, args, kwargs, output: print(args, kwargs), with_kwargs=True):
    make_layer()(input=torch.ones(1, 1))

# %% changes return_value
# A returned value replaces the output, of every module.
model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
with register_module_forward_hook(lambda module, args, output: output * 10):
    print(model(torch.tensor(2.0)))

# %% silent forward_called
# `layer.forward(x)` passes by all hooks.
with register_module_forward_hook(lambda module, args, output: print("global")):
    print(make_layer().forward(torch.ones(1, 1)).item())

# %% silent forward_raises
# When `forward` raises, it does not fire.
with register_module_forward_hook(lambda module, args, output: print("global")):
    make_layer()(torch.ones(3))

# %% also always_call
# With `always_call=True`, it does.
with register_module_forward_hook(lambda module, args, output: print("global", output), always_call=True):
    make_layer()(torch.ones(3))
