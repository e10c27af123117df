"""torch.optim.Optimizer.register_load_state_dict_post_hook

Calls a function when `load_state_dict` of an optimizer has taken over a state.
"""

import torch


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# When the state is loaded.
w, optimizer = make_optimizer()
saved = optimizer.state_dict()
saved["param_groups"][0]["lr"] = 0.125
optimizer.register_load_state_dict_post_hook(lambda optimizer: print("post-hook", optimizer.param_groups[0]["lr"]))
optimizer.load_state_dict(saved)

# %% arguments optimizer
# One argument, the optimizer.
w, optimizer = make_optimizer()
optimizer.register_load_state_dict_post_hook(lambda *given: print([type(value).__name__ for value in given]))
optimizer.load_state_dict(optimizer.state_dict())

# %% changes optimizer
# It may change the optimizer; what it returns is ignored.
w, optimizer = make_optimizer()


def post_hook(optimizer):
    optimizer.param_groups[0]["lr"] = 0.25
    return "ignored"


optimizer.register_load_state_dict_post_hook(post_hook)
print(optimizer.load_state_dict(optimizer.state_dict()), optimizer.param_groups[0]["lr"])

# %% silent load_raises
# When loading fails, it does not fire.
w, optimizer = make_optimizer()
optimizer.register_load_state_dict_post_hook(lambda optimizer: print("post-hook"))
optimizer.load_state_dict({"state": {}, "param_groups": []})
