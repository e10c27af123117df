"""torch.Tensor.register_post_accumulate_grad_hook

Calls a function with a leaf tensor after its `.grad` was written.
"""

import torch

# %% when order
# After the tensor hooks of the leaf, when `.grad` is written, in every pass.
w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate", w.grad))
w.register_hook(lambda grad: print("tensor hook", w.grad))
(w * 3).backward()
(w * 3).backward()

# %% when used_twice
# Once per pass, also when the leaf is used twice.
w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate", w.grad))
(w * 3 + w * 4).backward()

# %% arguments leaf
# One argument: the leaf itself, not its gradient.
w = torch.nn.Parameter(torch.ones(2, 3))
w.register_post_accumulate_grad_hook(lambda p: print(type(p).__name__, p.shape, p is w))
(w * 3).sum().backward()

# %% changes in_place
# It may edit `.grad`, or use it up and drop it: an optimizer step inside backward.
w = torch.tensor(2.0, requires_grad=True)


def step(w):
    with torch.no_grad():
        w -= 0.1 * w.grad
    w.grad = None


w.register_post_accumulate_grad_hook(step)
(w * 3).backward()
print("w", w.item(), "w.grad", w.grad)

# %% changes return_value
# It must return None.
w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: w.grad * 10)
(w * 3).backward()

# %% silent autograd_grad
# `torch.autograd.grad` writes no `.grad`, so the hook does not fire; a tensor hook does.
w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate", w.grad))
w.register_hook(lambda grad: print("tensor hook", grad))
print(torch.autograd.grad(w * 3, w))

# %% silent inputs
# `backward(inputs=[v])` does not write the `.grad` of `w`.
w = torch.tensor(2.0, requires_grad=True)
v = torch.tensor(3.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: print("w", w.grad))
v.register_post_accumulate_grad_hook(lambda v: print("v", v.grad))
(w * v).backward(inputs=[v])


# %% also none_gradient
# If a function returned None instead of a gradient, it is called all the same; `.grad` stays None.
class Stop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return None


w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate", w.grad))
Stop.apply(w).backward()
print("w.grad", w.grad)

# %% also intermediate
# A tensor that is not a leaf refuses it.
w = torch.tensor(2.0, requires_grad=True)
(w * 3).register_post_accumulate_grad_hook(print)

# %% also inputs_leaf
# `backward(inputs=[w])` writes the `.grad` of `w` and calls the hook.
w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate", w.grad))
(w * 3).backward(inputs=[w])

# %% also exception
# When the hook raises, `.grad` has already been written.
w = torch.tensor(2.0, requires_grad=True)
w.register_post_accumulate_grad_hook(lambda w: 1 / 0)
try:
    (w * 3).backward()
finally:
    print("w.grad", w.grad)

# %% also inputs_dict
# `inputs` as a dict of parameters: is it taken?
layer = torch.nn.Linear(1, 1, bias=False)
layer.weight.register_post_accumulate_grad_hook(lambda weight: print("post-accumulate", weight.grad))
layer(torch.ones(1, 1)).sum().backward(inputs=dict(layer.named_parameters()))
