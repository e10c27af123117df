"""torch.nn.Module.register_state_dict_post_hook

Calls a function when `state_dict` has collected the tensors of a module.
"""

import torch


def make_model():
    return torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))


# %% when order
# After the tensors of the module and of those inside are collected: the inner module first.
model = make_model()
model.register_state_dict_post_hook(lambda module, state, prefix, metadata: print("container", list(state)))
model[0].register_state_dict_post_hook(lambda module, state, prefix, metadata: print("layer", list(state)))
model.state_dict()

# %% arguments state
# The module, the dict so far, the prefix of its keys, and metadata with the version of the module.
model = make_model()
model[0].register_state_dict_post_hook(lambda module, state, prefix, metadata: print(list(state), prefix, metadata))
model.state_dict()

# %% changes in_place
# It may edit the dict.
model = make_model()
model.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update(extra=1))
print(list(model.state_dict()))

# %% changes return_value
# It must return None.
model = make_model()
model.register_state_dict_post_hook(lambda module, state, prefix, metadata: dict(state))
model.state_dict()

# %% silent load
# Loading does not call it.
model = make_model()
state = model.state_dict()
model.register_state_dict_post_hook(lambda module, state, prefix, metadata: print("hook"))
print(model.load_state_dict(state))
