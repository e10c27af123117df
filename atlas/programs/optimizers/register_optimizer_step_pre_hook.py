"""torch.optim.optimizer.register_optimizer_step_pre_hook

Calls a function before a step of every optimizer.
"""

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# Before the hooks of the optimizer itself.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("own pre-hook", w.item()))
with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("global pre-hook", w.item())):
    optimizer.step()

# %% arguments args
# The optimizer, and the positional and the keyword arguments of `step`.
w, optimizer = make_optimizer()
with register_optimizer_step_pre_hook(
    lambda optimizer, args, kwargs: print(type(optimizer).__name__, len(args), list(kwargs))
):
    optimizer.step(closure=lambda: None)

# %% changes gradients
# It may edit gradients in place.
w, optimizer = make_optimizer()


def edit(optimizer, args, kwargs):
    w.grad.mul_(10)


with register_optimizer_step_pre_hook(edit):
    optimizer.step()
print("w", w.item())

# %% changes return_value
# A returned pair replaces the arguments of `step`; anything else is refused.
w, optimizer = make_optimizer()
with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: "anything"):
    print(optimizer.step())

# %% silent zero_grad
# `zero_grad` does not call it.
w, optimizer = make_optimizer()
with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("global pre-hook")):
    optimizer.zero_grad()
print("w.grad", w.grad)

# %% silent learning_rate
# A step of a learning rate scheduler is no step of an optimizer.
w, optimizer = make_optimizer()
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
optimizer.step()
with register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: print("global pre-hook")):
    scheduler.step()
print(scheduler.get_last_lr())
