"""torch.autograd.graph.save_on_cpu

Inside its `with` block, tensors that are saved for backward are kept on the CPU: saved-tensor hooks that torch brings
along.
"""

import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks


def keep(tensor):
    return tensor


def pack(tensor):
    print("pack", tensor)
    return tensor


# %% when copy
# At every save. On a CPU tensor it keeps a reference to the same memory, as the change through `.data` shows.
a = torch.tensor(2.0, requires_grad=True)
with save_on_cpu():
    c = a.square()
a.data.fill_(100)
c.backward()
print("a.grad", a.grad)

# %% arguments none
# You give it no function; `pin_memory` and `device_type` are its options.
block = save_on_cpu(pin_memory=False, device_type="cuda")
print(isinstance(block, saved_tensors_hooks))
print(block.pack_hook(torch.ones(2)))

# %% changes version_check
# A later change of the saved tensor in place is not noticed, and the gradient is that of the new value.
a = torch.tensor(2.0, requires_grad=True)
c = a * 1
with save_on_cpu():
    e = c.square()
c.mul_(10)
e.backward()
print("a.grad", a.grad)

# %% silent no_grad
# Where nothing is saved it does nothing.
a = torch.tensor(2.0, requires_grad=True)
with save_on_cpu(), torch.no_grad():
    c = a.square()
print(c.requires_grad)

# %% silent outer_hooks
# Hooks of an outer block stay silent while it is the inner one.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(pack, keep):
    with save_on_cpu():
        a.square().backward()
print("a.grad", a.grad)
