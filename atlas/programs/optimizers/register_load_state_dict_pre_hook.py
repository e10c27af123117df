"""torch.optim.Optimizer.register_load_state_dict_pre_hook

Calls a function before `load_state_dict` of an optimizer takes over a state.
"""

import torch


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# Before anything is checked or copied.
w, optimizer = make_optimizer()
optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: print("pre-hook"))
optimizer.load_state_dict({"state": {}, "param_groups": []})

# %% arguments state
# The optimizer and the dict, a shallow copy of the caller's.
w, optimizer = make_optimizer()
saved = optimizer.state_dict()
optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: print(list(state), state is saved))
optimizer.load_state_dict(saved)

# %% changes return_value
# A returned dict replaces the state.
w, optimizer = make_optimizer()
saved = optimizer.state_dict()


def pre_hook(optimizer, state):
    groups = [{**group, "lr": 0.125} for group in state["param_groups"]]
    return {**state, "param_groups": groups}


optimizer.register_load_state_dict_pre_hook(pre_hook)
optimizer.load_state_dict(saved)
print(optimizer.param_groups[0]["lr"])

# %% silent save
# Saving does not call it.
w, optimizer = make_optimizer()
optimizer.register_load_state_dict_pre_hook(lambda optimizer, state: print("pre-hook"))
print(list(optimizer.state_dict()))
