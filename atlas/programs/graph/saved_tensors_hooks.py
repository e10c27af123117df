"""torch.autograd.graph.saved_tensors_hooks

Inside its `with` block, a tensor that is saved for backward goes through `pack`, and comes back through `unpack`.
"""

import torch
from torch.autograd.graph import saved_tensors_hooks


def keep(tensor):
    return tensor


def pack(tensor):
    print("pack", tensor.detach())
    return tensor


def unpack(packed):
    print("unpack", packed.detach())
    return packed


# %% when order
# `pack` runs in forward, when an operation saves; `unpack` in backward, when the node computes.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
with saved_tensors_hooks(pack, unpack):
    c = a * b
print("forward is over")
c.backward()


# %% when nested
# Of two nested blocks only the inner one acts.
def inner(tensor):
    print("inner")
    return tensor


a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(pack, unpack):
    with saved_tensors_hooks(inner, keep):
        a.exp().backward()

# %% when read
# Reading a saved value through the node calls `unpack`, too.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(keep, unpack):
    c = a * a
print(c.grad_fn._saved_self.item())

# %% arguments kinds
# `pack` gets the tensor that is saved (here the input of `square`, then the output of `exp`), with its graph; `unpack`
# gets what `pack` returned.
a = torch.tensor(2.0, requires_grad=True)
c = a * 1


def pack(tensor):
    print("pack", type(tensor).__name__, tensor.shape, tensor.requires_grad, tensor is c)
    return "anything"


def unpack(packed):
    print("unpack", repr(packed))
    return torch.tensor(2.0)


with saved_tensors_hooks(pack, unpack):
    e = c.square()
    f = c.exp()
e.backward()

# %% changes unpacked_value
# What `unpack` returns is what the node computes with.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(keep, lambda tensor: tensor * 100):
    c = a.square()
c.backward()
print("a.grad", a.grad)

# %% changes pack_in_place
# An edit in place of the tensor in `pack` is refused.
a = torch.tensor(2.0, requires_grad=True)
c = a * 1
with saved_tensors_hooks(lambda tensor: tensor.mul_(100), keep):
    c.square()

# %% changes unpack_wrong_type
# `unpack` must return a tensor.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(keep, lambda tensor: "no tensor"):
    c = a.square()
c.backward()

# %% silent nothing_saved
# An addition saves nothing; a multiplication by a number saves no tensor of yours.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(pack, keep):
    (a + 1).backward()
print("a.grad", a.grad)

# %% silent no_grad
# Under `torch.no_grad()` nothing is saved.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(pack, keep), torch.no_grad():
    print(a.square())

# %% silent saved_before
# What was saved before the block is not touched.
a = torch.tensor(2.0, requires_grad=True)
c = a.square()
with saved_tensors_hooks(keep, unpack):
    c.backward()
print("a.grad", a.grad)

# %% also number
# A number that an operation needs (the 3 of `a * 3`) does not go through `pack`.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(pack, keep):
    (a * 3).backward()

# %% also twice
# With `retain_graph=True` the second pass unpacks again.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(keep, unpack):
    c = a.square()
c.backward(retain_graph=True)
c.backward()
