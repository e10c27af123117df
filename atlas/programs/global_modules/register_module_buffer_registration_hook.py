"""torch.nn.modules.module.register_module_buffer_registration_hook

Calls a function when a buffer is about to be registered in any module.
"""

import torch
from torch.nn.modules.module import register_module_buffer_registration_hook

# %% when order
# Before the buffer is in the module, at the call that registers it and at an assignment.
layer = torch.nn.Module()
with register_module_buffer_registration_hook(lambda module, name, value: print(name, list(module._buffers))):
    layer.register_buffer("w", torch.ones(2))
    layer.v = torch.nn.Buffer(torch.ones(2))

# %% when constructor
# While a module is constructed, for each buffer that it registers.
with register_module_buffer_registration_hook(lambda module, name, value: print(type(module).__name__, name)):
    torch.nn.BatchNorm1d(1)

# %% arguments name_and_value
# The module, the name and the buffer.
layer = torch.nn.Module()
with register_module_buffer_registration_hook(
    lambda module, name, value: print(type(module).__name__, name, type(value).__name__, value.shape)
):
    layer.register_buffer("w", torch.ones(2))

# %% changes return_value
# A returned buffer is registered instead.
layer = torch.nn.Module()
with register_module_buffer_registration_hook(lambda module, name, value: torch.zeros(3)):
    layer.register_buffer("w", torch.ones(2))
print(layer.w)

# %% changes wrong_type
# Something of another kind is registered without a check.
layer = torch.nn.Module()
with register_module_buffer_registration_hook(lambda module, name, value: "no tensor"):
    layer.register_buffer("w", torch.ones(2))
print(layer._buffers["w"])

# %% silent plain_attribute
# An assignment of something else does not call it.
layer = torch.nn.Module()
with register_module_buffer_registration_hook(lambda module, name, value: print(name)):
    layer.w = torch.ones(2)
print(layer.w)

# %% also existing
# Assigning another tensor to a buffer that exists counts as a registration.
layer = torch.nn.Module()
layer.register_buffer("w", torch.ones(2))
with register_module_buffer_registration_hook(lambda module, name, value: print(name)):
    layer.w = torch.zeros(2)
print(layer.w)
