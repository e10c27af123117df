"""torch.nn.modules.module.register_module_parameter_registration_hook

Calls a function when a parameter is about to be registered in any module.
"""

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

# %% when order
# Before the parameter is in the module, at the call that registers it and at an assignment.
layer = torch.nn.Module()
with register_module_parameter_registration_hook(lambda module, name, value: print(name, list(module._parameters))):
    layer.register_parameter("w", torch.nn.Parameter(torch.ones(2)))
    layer.v = torch.nn.Parameter(torch.ones(2))

# %% when constructor
# While a module is constructed, for each parameter that it registers.
with register_module_parameter_registration_hook(lambda module, name, value: print(type(module).__name__, name)):
    torch.nn.Linear(1, 1)

# %% arguments name_and_value
# The module, the name and the parameter.
layer = torch.nn.Module()
with register_module_parameter_registration_hook(
    lambda module, name, value: print(type(module).__name__, name, type(value).__name__, value.shape)
):
    layer.register_parameter("w", torch.nn.Parameter(torch.ones(2)))

# %% changes return_value
# A returned parameter is registered instead.
layer = torch.nn.Module()
with register_module_parameter_registration_hook(lambda module, name, value: torch.nn.Parameter(torch.zeros(3))):
    layer.register_parameter("w", torch.nn.Parameter(torch.ones(2)))
print(layer.w)

# %% changes wrong_type
# Something of another kind is registered without a check.
layer = torch.nn.Module()
with register_module_parameter_registration_hook(lambda module, name, value: torch.ones(2)):
    layer.register_parameter("w", torch.nn.Parameter(torch.ones(2)))
print(layer._parameters["w"])

# %% silent plain_attribute
# An assignment of something else does not call it.
layer = torch.nn.Module()
with register_module_parameter_registration_hook(lambda module, name, value: print(name)):
    layer.w = torch.ones(2)
print(layer.w)

# %% silent existing
# Changing the values of a parameter in place registers nothing.
layer = torch.nn.Linear(1, 1)
with register_module_parameter_registration_hook(lambda module, name, value: print(name)):
    with torch.no_grad():
        layer.weight.fill_(5.0)
print(layer.weight.item())
