"""torch.nn.Module.register_load_state_dict_post_hook

Calls a function when `load_state_dict` has copied the tensors of a module.
"""

import torch


def make_model():
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
    torch.nn.init.constant_(model[0].weight, 3.0)
    return model


# %% when order
# After the tensors of the module and of those inside are copied: the inner module first.
model = make_model()
model.register_load_state_dict_post_hook(lambda module, keys: print("container", module[0].weight.item()))
model[0].register_load_state_dict_post_hook(lambda module, keys: print("layer", module.weight.item()))
model.load_state_dict({"0.weight": torch.tensor([[5.0]])})

# %% arguments keys
# The module and the keys that did not match: two lists.
model = make_model()
model.register_load_state_dict_post_hook(lambda module, keys: print(type(module).__name__, keys))
model.load_state_dict({"other": torch.ones(1)}, strict=False)

# %% changes in_place
# It may edit the lists: here it forgives a missing key.
model = make_model()
model.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
print(model.load_state_dict({}))

# %% changes return_value
# It must return None.
model = make_model()
model.register_load_state_dict_post_hook(lambda module, keys: "anything")
model.load_state_dict({"0.weight": torch.tensor([[5.0]])})

# %% silent save
# Saving does not call it.
model = make_model()
model.register_load_state_dict_post_hook(lambda module, keys: print("hook"))
print(list(model.state_dict()))

# %% also wrong_shape
# Two numbers for a parameter that is one number: is it refused?
model = torch.nn.Module()
model.scale = torch.nn.Parameter(torch.tensor(3.0))
model.register_load_state_dict_post_hook(lambda module, keys: print("hook", module.scale.item()))
model.load_state_dict({"scale": torch.tensor([5.0, 6.0])})
