"""torch.Tensor.retain_grad

Keeps the gradient of an intermediate tensor in `.grad`. It calls no function of yours, but it is stored and run like
a hook.
"""

import torch

# %% when last
# After all tensor hooks of the tensor, whatever the order of the calls: `.grad` is what the hooks made of it.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
c.register_hook(lambda grad: grad * 10)
(c * 4).backward()
print("c.grad", c.grad)

# %% when before_node_hooks
# Before the pre-hooks of the node that made the tensor: what they change is not in `.grad`.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
c.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
(c * 4).backward()
print("c.grad", c.grad)
print("a.grad", a.grad)

# %% arguments none
# There is no function, so there are no arguments; `retains_grad` tells whether it was called.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
print(c.retains_grad, c.retain_grad(), c.retains_grad)

# %% changes accumulates
# It writes `.grad`; the `.grad` of two passes is the sum.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
e = c * 4
e.backward(retain_graph=True)
e.backward()
print("c.grad", c.grad)

# %% changes same_memory
# The kept gradient is a copy: an edit in place by a hook that runs later, here the pre-hook of the node, does not
# reach it.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()


def edit(grads):
    grads[0].mul_(10)


c.grad_fn.register_prehook(edit)
(c * 4).backward()
print("c.grad", c.grad)

# %% when autograd_grad
# In `torch.autograd.grad`, too, though that writes no `.grad` of a leaf.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
print(torch.autograd.grad(c * 4, a))
print("c.grad", c.grad)

# %% silent leaf
# On a leaf it does nothing.
a = torch.tensor(2.0, requires_grad=True)
a.retain_grad()
print(a.retains_grad)

# %% silent not_reached
# A pass that does not reach the tensor writes nothing.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
(a * 4).backward()
print("c.grad", c.grad)

# %% also not_called
# Without it, `.grad` of an intermediate tensor stays None, and reading it warns.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
(c * 4).backward()
print("c.grad", c.grad)

# %% also in_place_later
# After an in-place operation it follows the new version of the tensor, unlike a hook.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
c.register_hook(lambda grad: print("hook", grad))
c.mul_(10)
c.backward()
print("c.grad", c.grad)

# %% also no_grad_needed
# A tensor that does not require a gradient refuses it.
torch.ones(2).retain_grad()
