"""torch.optim.Optimizer.register_state_dict_post_hook

Calls a function when `state_dict` of an optimizer has collected its state.
"""

import torch


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# Before `state_dict()` returns, in the order of registration.
w, optimizer = make_optimizer()
optimizer.register_state_dict_post_hook(lambda optimizer, state: print("first"))
optimizer.register_state_dict_post_hook(lambda optimizer, state: print("second"))
print(list(optimizer.state_dict()))

# %% arguments state
# The optimizer and the dict.
w, optimizer = make_optimizer()
optimizer.register_state_dict_post_hook(lambda optimizer, state: print(type(optimizer).__name__, list(state)))
optimizer.state_dict()

# %% changes return_value
# A returned dict replaces the state, unlike the hook of a module; an edit in place works, too.
w, optimizer = make_optimizer()
optimizer.register_state_dict_post_hook(lambda optimizer, state: {"epoch": 3})
optimizer.register_state_dict_post_hook(lambda optimizer, state: state.update(name="mine"))
print(optimizer.state_dict())

# %% silent load
# Loading does not call it.
w, optimizer = make_optimizer()
state = optimizer.state_dict()
optimizer.register_state_dict_post_hook(lambda optimizer, state: print("post-hook"))
print(optimizer.load_state_dict(state))
