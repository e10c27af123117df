"""torch.nn.modules.module.register_module_module_registration_hook

Calls a function when a module is about to be registered in any module.
"""

import torch
from torch.nn.modules.module import register_module_module_registration_hook

# %% when order
# Before the module is in the module, at the call that registers it and at an assignment.
layer = torch.nn.Module()
with register_module_module_registration_hook(lambda module, name, value: print(name, list(module._modules))):
    layer.add_module("w", torch.nn.ReLU())
    layer.v = torch.nn.ReLU()

# %% when constructor
# While a module is constructed, for each module that it registers.
with register_module_module_registration_hook(lambda module, name, value: print(type(module).__name__, name)):
    torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())

# %% arguments name_and_value
# The module, the name and the module.
layer = torch.nn.Module()
with register_module_module_registration_hook(lambda module, name, value: print(type(module).__name__, name, value)):
    layer.add_module("w", torch.nn.ReLU())

# %% changes return_value
# A returned module is registered instead.
layer = torch.nn.Module()
with register_module_module_registration_hook(lambda module, name, value: torch.nn.Tanh()):
    layer.add_module("w", torch.nn.ReLU())
print(layer.w)

# %% changes wrong_type
# Something of another kind is registered without a check.
layer = torch.nn.Module()
with register_module_module_registration_hook(lambda module, name, value: "no module"):
    layer.add_module("w", torch.nn.ReLU())
print(layer._modules["w"])

# %% silent plain_attribute
# An assignment of something else does not call it.
layer = torch.nn.Module()
with register_module_module_registration_hook(lambda module, name, value: print(name)):
    layer.w = "no module"
print(layer.w)

# %% silent existing
# Modules that were made before are not announced when they are called.
model = torch.nn.Sequential(torch.nn.ReLU())
with register_module_module_registration_hook(lambda module, name, value: print(name)):
    model(torch.ones(1))
print(len(model))
