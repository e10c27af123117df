"""torch.nn.Module.register_load_state_dict_pre_hook

Calls a function before `load_state_dict` copies the tensors of a module.
"""

import torch


def make_model():
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    torch.nn.init.constant_(model[0].weight, 3.0)
    return model


# %% when order
# Before the tensors of the module are copied: the container first.
model = make_model()
model.register_load_state_dict_pre_hook(lambda module, *rest: print("container"))
model[0].register_load_state_dict_pre_hook(lambda module, *rest: print("layer", module.weight.item()))
model.load_state_dict({"0.weight": torch.tensor([[5.0]])})

# %% arguments seven
# The module, the dict, the prefix, metadata, `strict`, and three lists to add to: missing, unexpected, and errors.
model = make_model()
model[0].register_load_state_dict_pre_hook(lambda module, *rest: print(type(module).__name__, rest))
model.load_state_dict({"0.weight": torch.tensor([[5.0]])})

# %% changes in_place
# It may edit the dict: here it renames an old key. The caller's dict stays as it was.
model = make_model()


def rename(module, state, prefix, *rest):
    state[prefix + "weight"] = state.pop(prefix + "kernel")


model[0].register_load_state_dict_pre_hook(rename)
state = {"0.kernel": torch.tensor([[5.0]])}
print(model.load_state_dict(state))
print(model[0].weight.item(), list(state))

# %% changes return_value
# What it returns is ignored.
model = make_model()
model.register_load_state_dict_pre_hook(lambda module, *rest: {})
print(model.load_state_dict({"0.weight": torch.tensor([[5.0]])}))

# %% silent copied_by_hand
# Copying a parameter by hand does not call it.
model = make_model()
model.register_load_state_dict_pre_hook(lambda module, *rest: print("hook"))
with torch.no_grad():
    model[0].weight.copy_(torch.tensor([[5.0]]))
print(model[0].weight.item())

# %% also assign
# With `assign=True` the parameter is another object afterwards, and a tensor hook of the old one does not move along.
model = make_model()
old = model[0].weight
old.register_hook(lambda grad: print("hook of the weight"))
model.register_load_state_dict_pre_hook(lambda module, state, prefix, metadata, *rest: print(metadata))
model.load_state_dict({"0.weight": torch.tensor([[5.0]])}, assign=True)
print(model[0].weight is old)
model(torch.ones(1, 1)).sum().backward()
print(model[0].weight.grad)
