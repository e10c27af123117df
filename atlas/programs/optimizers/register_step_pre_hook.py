"""torch.optim.Optimizer.register_step_pre_hook

Calls a function before a step of one optimizer.
"""

import torch


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# When `step()` is called, before the parameters change.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("first", w.item()))
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("second", w.item()))
optimizer.step()
print("w", w.item())

# %% when closure
# With a closure: before the closure is called.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("pre-hook"))
optimizer.step(lambda: print("closure"))

# %% arguments closure
# The optimizer, and the positional and the keyword arguments of `step`; the optimizer is the first positional one.
w, optimizer = make_optimizer()


def pre_hook(optimizer, args, kwargs):
    print(type(optimizer).__name__, [type(value).__name__ for value in args], list(kwargs))


optimizer.register_step_pre_hook(pre_hook)
optimizer.step()
optimizer.step(lambda: None)
optimizer.step(closure=lambda: None)

# %% changes gradients
# It may edit gradients: clipping, for one.
w, optimizer = make_optimizer()


def edit(optimizer, args, kwargs):
    w.grad.mul_(0)


optimizer.register_step_pre_hook(edit)
optimizer.step()
print("w", w.item())

# %% changes return_value
# A returned pair replaces the arguments of `step`; anything else is refused.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: (args, {"closure": lambda: print("other closure")}))
optimizer.step()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: "anything")
optimizer.step()

# %% silent zero_grad
# `zero_grad` does not call it, nor does a step of another optimizer.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("pre-hook"))
optimizer.zero_grad()
torch.optim.SGD([w]).step()
print("w.grad", w.grad)

# %% silent scaler
# A GradScaler that finds infinite gradients skips the step, and with it the hook.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("pre-hook"))
scaler = torch.amp.GradScaler("cpu")
scaler.scale(w * torch.inf).backward()
scaler.step(optimizer)
print("w", w.item())

# %% also exception
# An exception in it keeps the step from happening.
w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: 1 / 0)
try:
    optimizer.step()
finally:
    print("w", w.item())

# %% also copied
# A deep copy of the optimizer does not have the hook.
import copy

w, optimizer = make_optimizer()
optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: print("pre-hook"))
copy.deepcopy(optimizer).step()
print("w", w.item())
