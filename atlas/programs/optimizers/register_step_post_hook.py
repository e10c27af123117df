"""torch.optim.Optimizer.register_step_post_hook

Calls a function after a step of one optimizer.
"""

import torch


def make_optimizer():
    w = torch.nn.Parameter(torch.tensor(2.0))
    w.grad = torch.tensor(1.0)
    return w, torch.optim.SGD([w], lr=0.5)


# %% when order
# When the parameters have changed, before `step()` returns.
w, optimizer = make_optimizer()
optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("post-hook", w.item()))
optimizer.step()

# %% arguments args
# The optimizer, and the positional and the keyword arguments of `step`.
w, optimizer = make_optimizer()
optimizer.register_step_post_hook(
    lambda optimizer, args, kwargs: print(type(optimizer).__name__, len(args), list(kwargs))
)
optimizer.step(closure=lambda: None)

# %% changes parameters
# It may edit parameters: weight clipping, for one. What it returns is ignored.
w, optimizer = make_optimizer()


def clip(optimizer, args, kwargs):
    with torch.no_grad():
        w.clamp_(max=1.0)
    return "ignored"


optimizer.register_step_post_hook(clip)
print(optimizer.step(), "w", w.item())

# %% silent step_raises
# When the step raises, it does not fire.
w, optimizer = make_optimizer()
optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("post-hook"))
optimizer.step(lambda: 1 / 0)

# %% silent zero_grad
# `zero_grad` does not call it.
w, optimizer = make_optimizer()
optimizer.register_step_post_hook(lambda optimizer, args, kwargs: print("post-hook"))
optimizer.zero_grad()
print("w.grad", w.grad)
