"""torch.autograd.graph.disable_saved_tensors_hooks

Inside its `with` block, saved-tensor hooks are refused with your message.
"""

import torch
from torch.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks


def keep(tensor):
    return tensor


def unpack(packed):
    print("unpack", packed)
    return packed


# %% when entering
# When a block of hooks is entered inside it.
with disable_saved_tensors_hooks("no hooks here, please"):
    with saved_tensors_hooks(keep, keep):
        print("never printed")

# %% when inside
# When it is entered inside a block of hooks.
with saved_tensors_hooks(keep, keep):
    with disable_saved_tensors_hooks("no hooks here, please"):
        print("never printed")

# %% arguments message
# It has one argument, the message of the error; without one it is refused.
disable_saved_tensors_hooks()

# %% changes saving
# Saving itself works as ever.
a = torch.tensor(2.0, requires_grad=True)
with disable_saved_tensors_hooks("no hooks here, please"):
    a.square().backward()
print("a.grad", a.grad)

# %% silent saved_before
# Hooks that already packed a tensor are unpacked inside the block without an error.
a = torch.tensor(2.0, requires_grad=True)
with saved_tensors_hooks(keep, unpack):
    c = a.square()
with disable_saved_tensors_hooks("no hooks here, please"):
    c.backward()
