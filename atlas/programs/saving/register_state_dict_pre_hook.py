"""torch.nn.Module.register_state_dict_pre_hook

Calls a function before `state_dict` collects the tensors of a module.
"""

import torch


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))


# %% when order
# Before the tensors of the module are collected; for the container first, then for the modules inside.
model = make_model()
model.register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("container"))
model[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("layer"))
print(list(model.state_dict()))

# %% arguments prefix
# The module, the prefix of its keys, and whether the tensors are kept as parameters (`keep_vars`).
model = make_model()
model[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: print(type(module).__name__, prefix, keep_vars))
model.state_dict()

# %% changes module
# What it changes in the module is saved; what it returns is ignored.
model = make_model()


def fill(module, prefix, keep_vars):
    torch.nn.init.constant_(module.weight, 5.0)
    return {}


model[0].register_state_dict_pre_hook(fill)
print(model.state_dict())

# %% silent parameters
# Other ways to read the tensors do not call it.
model = make_model()
model[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: print("hook"))
print([name for name, _ in model.named_parameters()])

# %% also exception
# An exception in it keeps `state_dict` from going on.
model = make_model()
model.register_state_dict_pre_hook(lambda module, prefix, keep_vars: 1 / 0)
model.state_dict()
