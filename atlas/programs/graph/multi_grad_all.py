"""torch.autograd.graph.register_multi_grad_hook

With `mode="all"` (the default): calls a function once per pass, when the gradients of all the tensors are there.
"""

import torch
from torch.autograd.graph import register_multi_grad_hook

# %% when order
# When the last of the tensors got its gradient.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a * b
register_multi_grad_hook([a, b, c], lambda grads: print("all", grads))
for name, tensor in [("a", a), ("b", b), ("c", c)]:
    tensor.register_hook(lambda grad, name=name: print(name, grad))
(c * 4).backward()

# %% when before_grad
# `.grad` of the last tensor is not written yet.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
register_multi_grad_hook([a, b], lambda grads: print("all", a.grad, b.grad))
(a * b).backward()

# %% arguments list
# One argument: a list of the gradients, in the order of the tensors.
a = torch.ones(2, requires_grad=True)
b = torch.ones(3, requires_grad=True)
register_multi_grad_hook([b, a], lambda grads: print(type(grads).__name__, [grad.shape for grad in grads]))
(a.sum() * b.sum()).backward()

# %% arguments unreached
# A tensor that the pass does not reach has None; the hook does not wait for it.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
register_multi_grad_hook([a, b], lambda grads: print("all", grads))
(a * 3).backward()

# %% changes return_value
# What it returns is ignored.
a = torch.tensor(2.0, requires_grad=True)
register_multi_grad_hook([a], lambda grads: [grads[0] * 10])
(a * 3).backward()
print("a.grad", a.grad)

# %% changes in_place
# An edit in place reaches the gradient all the same.
a = torch.tensor(2.0, requires_grad=True)
register_multi_grad_hook([a], lambda grads: grads[0].mul_(10))
(a * 3).backward()
print("a.grad", a.grad)

# %% silent none_reached
# It stays silent when the pass reaches none of the tensors.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
register_multi_grad_hook([a], lambda grads: print("all", grads))
(b * 3).backward()
print("a.grad", a.grad)


# %% arguments none
# If a function returned None instead of the gradient of `b`, there is None in the list, too.
class First(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a * b

    @staticmethod
    def backward(ctx, grad):
        return grad, None


a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
register_multi_grad_hook([a, b], lambda grads: print("all", grads))
First.apply(a, b).backward()
print("a.grad", a.grad)

# %% also removed
# One handle removes it from all the tensors.
a = torch.tensor(2.0, requires_grad=True)
handle = register_multi_grad_hook([a], lambda grads: print("all", grads))
handle.remove()
print(type(handle).__name__, len(a._backward_hooks))

# %% also no_grad_needed
# A tensor that requires no gradient is refused.
a = torch.tensor(2.0, requires_grad=True)
register_multi_grad_hook([a, torch.ones(2)], print)

# %% also wrong_mode
# An unknown mode is refused.
register_multi_grad_hook([torch.tensor(2.0, requires_grad=True)], print, mode="first")
