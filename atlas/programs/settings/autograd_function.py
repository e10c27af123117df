"""torch.autograd.Function

Hooks around a function with a backward of its own.
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        print("backward", grad)
        return grad * 2


# %% also order
# Tensor hook of the output, node pre-hook, `backward`, node hook, tensor hook of the input.
x = torch.tensor(3.0, requires_grad=True)
y = Double.apply(x)
x.register_hook(lambda grad: print("tensor hook of x", grad))
y.register_hook(lambda grad: print("tensor hook of y", grad))
y.grad_fn.register_hook(lambda inputs, outputs: print("node hook", inputs, outputs))
y.grad_fn.register_prehook(lambda outputs: print("node pre-hook", outputs))
y.backward()


# %% also saved
# `ctx.save_for_backward` goes through saved-tensor hooks; an attribute of `ctx` does not.
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.kept = x.detach()
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        print(x.item(), ctx.kept.item())
        return grad * 2 * x


x = torch.tensor(3.0, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.detach() * 10, lambda tensor: tensor):
    y = Square.apply(x)
y.backward()


# %% also setup_context
# With `setup_context`, `forward` has no `ctx`, and `apply` takes keyword arguments.
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(x, scale=3.0):
        return x * scale

    @staticmethod
    def setup_context(ctx, inputs, output):
        print("inputs", inputs)
        ctx.scale = inputs[1]

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None


x = torch.tensor(3.0, requires_grad=True)
Scale.apply(x, scale=5.0).backward()
print("x.grad", x.grad)


# %% also wrong_dtype
# `backward` returns another dtype: the hook of the input sees it cast.
class Wide(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad.double()


x = torch.tensor(3.0, requires_grad=True)
x.register_hook(lambda grad: print(grad.dtype))
Wide.apply(x).backward()

# %% also signature
# `inspect.signature` of `apply`, which tools that wrap it may read.
import inspect

print(inspect.signature(Double.apply))
