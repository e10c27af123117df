"""torch.optim.optimizer.register_optimizer_step_post_hook

Calls a function after a step of every optimizer.
"""

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# After the hooks of the optimizer itself.
w, optimizer = make_optimizer()
optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("own post-hook", w.item()))
with register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("global post-hook", w.item())):
    optimizer.step()

# %% arguments args
# The optimizer, and the positional and the keyword arguments of `step`.
w, optimizer = make_optimizer()
with register_optimizer_step_post_hook(
    lambda optimizer, args, kwargs: print(type(optimizer).__name__, len(args), list(kwargs))
):
    optimizer.step(closure=lambda: None)

# %% changes parameters
# It may edit parameters in place.
w, optimizer = make_optimizer()


def edit(optimizer, args, kwargs):
    w.data.fill_(7.0)


with register_optimizer_step_post_hook(edit):
    optimizer.step()
print("w", w.item())

# %% changes return_value
# What it returns is ignored.
w, optimizer = make_optimizer()
with register_optimizer_step_post_hook(lambda optimizer, args, kwargs: "anything"):
    print(optimizer.step())

# %% silent zero_grad
# `zero_grad` does not call it.
w, optimizer = make_optimizer()
with register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("global post-hook")):
    optimizer.zero_grad()
print("w.grad", w.grad)

# %% silent learning_rate
# A step of a learning rate scheduler is no step of an optimizer.
w, optimizer = make_optimizer()
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
optimizer.step()
with register_optimizer_step_post_hook(lambda optimizer, args, kwargs: print("global post-hook")):
    scheduler.step()
print(scheduler.get_last_lr())
