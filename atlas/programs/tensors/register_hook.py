"""torch.Tensor.register_hook

Calls a function with the gradient of one tensor, before the gradient travels on.
"""

import torch

# %% when order
# Once per backward pass, when the tensor's gradient is complete: first the tensors near the loss, then those below.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a * b
e = c * 4
a.register_hook(lambda grad: print("a", grad))
b.register_hook(lambda grad: print("b", grad))
c.register_hook(lambda grad: print("c", grad))
e.register_hook(lambda grad: print("e", grad))
e.backward()

# %% when several_hooks
# Several hooks on one tensor run in the order in which they were registered; each gets what the one before returned.
a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: grad + 1)
a.register_hook(lambda grad: print("second hook", grad))
(a * 3).backward()

# %% when diamond
# A tensor that is used twice has one gradient, the sum; the hook fires once.
a = torch.tensor(2.0, requires_grad=True)
c = a * 1
c.register_hook(lambda grad: print("c", grad))
(c * 3 + c * 4).backward()

# %% when every_pass
# A hook on a leaf fires in every pass and sees the gradient of that pass; `.grad` holds the sum.
a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: print("a", grad, "a.grad", a.grad))
(a * 3).backward()
(a * 3).backward()

# %% when autograd_grad
# `torch.autograd.grad(e, c)` calls the hook of `c`, too: what it returns is the result.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: grad * 10)
print(torch.autograd.grad(c * 4, c))

# %% arguments gradient
# One argument: the gradient, a tensor of the shape of the tensor; it does not require a gradient itself.
x = torch.ones(2, 3, requires_grad=True)
x.register_hook(lambda grad: print(type(grad).__name__, grad.shape, grad.requires_grad))
(x * 2).sum().backward()

# %% arguments create_graph
# With `create_graph=True`, the gradient has a graph of its own.
x = torch.tensor(3.0, requires_grad=True)
x.register_hook(lambda grad: print(grad.requires_grad))
(x**2).backward(create_graph=True)

# %% changes return_value
# A returned tensor replaces the gradient, for this tensor and for everything below it.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.retain_grad()
c.register_hook(lambda grad: grad * 10)
(c * 4).backward()
print("c.grad", c.grad)
print("a.grad", a.grad)

# %% changes in_place
# An edit in place changes the gradient, too, and may change others: the addition hands one tensor to both inputs.
c = torch.tensor(6.0, requires_grad=True)
d = torch.tensor(4.0, requires_grad=True)
d.register_hook(lambda grad: grad.mul_(100))
(c + d).backward()
print("c.grad", c.grad)
print("d.grad", d.grad)

# %% changes wrong_shape
# A returned tensor of another shape is refused.
x = torch.ones(2, requires_grad=True)
x.register_hook(lambda grad: torch.ones(3))
(x * 2).sum().backward()

# %% changes wrong_type
# A returned number is refused.
x = torch.tensor(2.0, requires_grad=True)
x.register_hook(lambda grad: 5.0)
(x * 2).backward()

# %% changes other_dtype
# A returned tensor of another dtype is refused.
x = torch.tensor(2.0, requires_grad=True)
x.register_hook(lambda grad: grad.double())
(x * 2).backward()

# %% silent other_path
# A pass that does not reach the tensor does not call its hook.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
a.register_hook(lambda grad: print("a", grad))
(b * 4).backward()
print("a.grad", a.grad)

# %% silent inputs
# `backward(inputs=[b])` computes what `b` needs and nothing else.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
a.register_hook(lambda grad: print("a", grad))
(a * b).backward(inputs=[b])
print("b.grad", b.grad)

# %% silent detached
# What was computed from `c.detach()` sends `c` no gradient.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: print("c", grad))
(c.detach() * a).backward()
print("a.grad", a.grad)

# %% silent removed
# `remove()` of the handle takes the hook off; leaving a `with` block of the handle does, too.
a = torch.tensor(2.0, requires_grad=True)
with a.register_hook(lambda grad: print("a", grad)):
    pass
(a * 3).backward()
print("a.grad", a.grad)


# %% arguments none
# If a function returned None instead of a gradient, the hook is called with None.
class Stop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return None


a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: print("a", grad))
Stop.apply(a).backward()
print("a.grad", a.grad)

# %% also no_grad_needed
# A tensor that does not require a gradient refuses a hook.
torch.ones(2).register_hook(print)

# %% also in_place_later
# An in-place operation makes a new version of the tensor; a hook from before stays with the old version.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: print("before", grad))
c.mul_(10)
c.register_hook(lambda grad: print("after", grad))
c.backward()

# %% also view_of_changed_base alone
# The first hook on a view whose base was changed in place after the view was made ends the process.
base = torch.ones(2, requires_grad=True).clone()
view = base[0]
base.mul_(5)
view.register_hook(lambda grad: print("view", grad))
view.backward()

# %% also view_read_first
# The same, but `grad_fn` of the view is read before the hook is registered: all is well.
base = torch.ones(2, requires_grad=True).clone()
view = base[0]
base.mul_(5)
view.grad_fn
view.register_hook(lambda grad: print("view", grad))
view.backward()

# %% also added_during_pass
# A hook that is added to a tensor below while the pass runs fires in this pass.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3


def edit(grad):
    a.register_hook(lambda grad: print("a", grad))


c.register_hook(edit)
c.backward()

# %% also removed_during_pass
# A hook that removes the next hook of the same tensor: the hooks of a tensor are fixed when the first of them is
# called.
a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: second.remove())
second = a.register_hook(lambda grad: print("second", grad))
a.register_hook(lambda grad: print("third", grad))
(a * 3).backward()

# %% also removes_itself
# A hook that removes itself while it runs.
a = torch.tensor(2.0, requires_grad=True)


def once(grad):
    print("once", grad)
    handle.remove()


handle = a.register_hook(once)
a.register_hook(lambda grad: print("next", grad))
(a * 3).backward()

# %% also exception
# An exception in a hook ends the pass; tensors below get no gradient.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: 1 / 0)
try:
    c.backward()
finally:
    print("a.grad", a.grad)
