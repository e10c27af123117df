"""torch._C._autograd.SavedTensor.register_hooks

Puts `pack` and `unpack` on one tensor that a node has saved: `node._raw_saved_self.register_hooks(pack, unpack)`.
"""

import torch


def keep(tensor):
    return tensor


def pack(tensor):
    print("pack", tensor.detach())
    return tensor


def unpack(packed):
    print("unpack", packed.detach())
    return packed


# %% when order
# `pack` runs at once, `unpack` when the node computes.
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
c.grad_fn._raw_saved_self.register_hooks(pack, unpack)
print("registered")
c.backward()

# %% arguments attached
# `pack` gets a tensor that is detached from the graph, unlike with a block of `saved_tensors_hooks`.
a = torch.tensor(2.0, requires_grad=True)
c = (a * 1).square()


def show(tensor):
    print(type(tensor).__name__, tensor.requires_grad)
    return tensor


c.grad_fn._raw_saved_self.register_hooks(show, keep)

# %% changes unpacked_value
# What `unpack` returns is what the node computes with.
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
c.grad_fn._raw_saved_self.register_hooks(keep, lambda tensor: tensor * 100)
c.backward()
print("a.grad", a.grad)

# %% silent not_reached
# A pass that does not execute the node does not unpack.
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
c.grad_fn._raw_saved_self.register_hooks(keep, unpack)
print(torch.autograd.grad(c * 2, c))

# %% also twice
# A second registration on the same saved tensor is refused.
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
c.grad_fn._raw_saved_self.register_hooks(keep, keep)
c.grad_fn._raw_saved_self.register_hooks(keep, keep)

# %% also freed
# After the pass the saved tensor is gone, and with it the way to register.
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
saved = c.grad_fn._raw_saved_self
c.backward()
saved.register_hooks(keep, keep)

# %% also unpack_hook
# Can the hook be read back from the saved tensor?
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
saved = c.grad_fn._raw_saved_self
print(hasattr(saved, "unpack_hook"), hasattr(saved, "data"))
