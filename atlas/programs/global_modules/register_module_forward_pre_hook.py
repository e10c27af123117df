"""torch.nn.modules.module.register_module_forward_pre_hook

Calls a function before the `forward` of every module.
"""

import torch
from torch.nn.modules.module import register_module_forward_pre_hook


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% when order
# For the container first, then for the modules inside, each time before the hooks of the module itself.
model = torch.nn.Sequential(make_layer())
model[0].register_forward_pre_hook(lambda module, args: print("own pre-hook of the layer"))
with register_module_forward_pre_hook(lambda module, args: print("global", type(module).__name__)):
    model(torch.ones(1, 1))

# %% arguments positional
# The module and a tuple of the positional arguments; it cannot get the keyword arguments.
with register_module_forward_pre_hook(lambda module, args: print(type(module).__name__, args)):
    make_layer()(input=torch.ones(1, 1))

# %% changes return_value
# A returned value replaces the arguments, of every module.
model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
with register_module_forward_pre_hook(lambda module, args: args[0] * 10):
    print(model(torch.tensor(2.0)))

# %% silent forward_called
# `layer.forward(x)` passes by all hooks.
with register_module_forward_pre_hook(lambda module, args: print("global")):
    print(make_layer().forward(torch.ones(1, 1)).item())

# %% silent fast_path
# In eval mode without gradients, a transformer layer computes without calling its inner modules.
layer = torch.nn.TransformerEncoderLayer(4, 2, 4, batch_first=True).eval()
with register_module_forward_pre_hook(lambda module, args: print(type(module).__name__)), torch.no_grad():
    layer(torch.ones(1, 1, 4))
