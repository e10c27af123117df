"""torch.optim.Optimizer.register_state_dict_pre_hook

Calls a function before `state_dict` of an optimizer collects its state.
"""

import torch


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# When `state_dict()` is called, in the order of registration, or before the others with `prepend=True`.
w, optimizer = make_optimizer()
optimizer.register_state_dict_pre_hook(lambda optimizer: print("first"))
optimizer.register_state_dict_pre_hook(lambda optimizer: print("prepended"), prepend=True)
print(list(optimizer.state_dict()))

# %% arguments optimizer
# One argument, the optimizer.
w, optimizer = make_optimizer()
optimizer.register_state_dict_pre_hook(lambda *given: print([type(value).__name__ for value in given]))
optimizer.state_dict()

# %% changes optimizer
# What it changes in the optimizer is saved; what it returns is ignored.
w, optimizer = make_optimizer()


def pre_hook(optimizer):
    optimizer.param_groups[0]["lr"] = 0.25
    return {}


optimizer.register_state_dict_pre_hook(pre_hook)
print(optimizer.state_dict()["param_groups"][0]["lr"])

# %% silent copied
# A deep copy does not call it.
import copy

w, optimizer = make_optimizer()
optimizer.register_state_dict_pre_hook(lambda optimizer: print("pre-hook"))
print(type(copy.deepcopy(optimizer)).__name__)
