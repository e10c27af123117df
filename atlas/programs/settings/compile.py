"""torch.compile

Hooks on a compiled model or function, with `backend="eager"`: what Dynamo makes of them.
"""

import torch


def make_layer():
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, 3.0)
    return layer


# %% also hooks_before
# Module hooks that were there before the first call.
layer = make_layer()
layer.register_forward_pre_hook(lambda module, args: print("forward pre-hook"))
layer.register_forward_hook(lambda module, args, output: print("forward hook"))
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("full backward hook"))
compiled = torch.compile(layer, backend="eager")
compiled(torch.ones(1, 1, requires_grad=True)).sum().backward()

# %% also hooks_after
# A forward hook that is added after the first call.
layer = make_layer()
compiled = torch.compile(layer, backend="eager")
compiled(torch.ones(1, 1))
layer.register_forward_hook(lambda module, args, output: print("forward hook"))
compiled(torch.ones(1, 1))
print("called again")

# %% also hooks_after_in_place
# The same with `layer.compile()`.
layer = make_layer()
layer.compile(backend="eager")
layer(torch.ones(1, 1))
layer.register_forward_hook(lambda module, args, output: print("forward hook"))
layer(torch.ones(1, 1))
print("called again")

# %% also inner_after
# A forward hook that is added to an inner module after the first call.
model = torch.nn.Sequential(make_layer())
compiled = torch.compile(model, backend="eager")
compiled(torch.ones(1, 1))
model[0].register_forward_hook(lambda module, args, output: print("forward hook"))
compiled(torch.ones(1, 1))
print("called again")

# %% also hook_on_compiled
# A forward hook on the module that `torch.compile` returned.
compiled = torch.compile(make_layer(), backend="eager")
compiled.register_forward_hook(lambda module, args, output: print(type(module).__name__))
compiled(torch.ones(1, 1))


# %% also tensor_hook_inside
# A tensor hook that is registered inside a compiled function, on an intermediate tensor.
@torch.compile(backend="eager")
def function(x):
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    return y * 4


x = torch.tensor(2.0, requires_grad=True)
function(x).backward()
print("x.grad", x.grad)


# %% also tensor_hook_input
# A tensor hook that is registered inside a compiled function, on its input.
@torch.compile(backend="eager")
def function(x):
    x.register_hook(lambda grad: grad * 10)
    return x * 4


x = torch.tensor(2.0, requires_grad=True)
function(x).backward()
print("x.grad", x.grad)

# %% also parameter_hook
# A tensor hook and a post-accumulate hook on a parameter.
layer = make_layer()
layer.weight.register_hook(lambda grad: print("tensor hook", grad))
layer.weight.register_post_accumulate_grad_hook(lambda weight: print("post-accumulate", weight.grad))
torch.compile(layer, backend="eager")(torch.ones(1, 1)).sum().backward()

# %% also fullgraph
# With `fullgraph=True`, a forward hook that changes the output.
layer = make_layer()
layer.register_forward_hook(lambda module, args, output: output * 10)
print(torch.compile(layer, backend="eager", fullgraph=True)(torch.ones(1, 1)).item())

# %% also fullgraph_backward_hook
# With `fullgraph=True`, a full backward hook.
layer = make_layer()
layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 10,))
x = torch.ones(1, 1, requires_grad=True)
torch.compile(layer, backend="eager", fullgraph=True)(x).sum().backward()
print("x.grad", x.grad)


# %% also saved_tensors_hooks
# Saved-tensor hooks inside a compiled function.
@torch.compile(backend="eager")
def function(x):
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * 100, lambda tensor: tensor):
        return x.square()


x = torch.tensor(2.0, requires_grad=True)
function(x).backward()
print("x.grad", x.grad)


# %% also multi_grad_hook
# A multi-grad hook that is registered inside a compiled function.
@torch.compile(backend="eager")
def function(x):
    torch.autograd.graph.register_multi_grad_hook([x], lambda grads: print("multi-grad hook", grads))
    return x * 4


x = torch.tensor(2.0, requires_grad=True)
function(x).backward()
print("x.grad", x.grad)

# %% also global_hook_removed
# A global forward hook that was removed before: torch.compile looks for global hooks. Does it still find one?
hook = torch.nn.modules.module.register_module_forward_hook(print, with_kwargs=True)
hook.remove()
compiled = torch.compile(make_layer(), backend="eager")
print(compiled(torch.ones(1, 1)).item())


# %% also fullgraph_tensor_hook
# With `fullgraph=True`, a tensor hook that is registered on an intermediate tensor inside the compiled function.
@torch.compile(backend="eager", fullgraph=True)
def function(x):
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    return y * 4


x = torch.tensor(2.0, requires_grad=True)
function(x).backward()
print("x.grad", x.grad)

# %% also global_hook
# A hook on all modules fires for the compiled module and for the one inside of it.
compiled = torch.compile(make_layer(), backend="eager")
with torch.nn.modules.module.register_module_forward_hook(lambda module, args, output: output + 1):
    print(compiled(torch.ones(1, 1)).item())

# %% also registered_inside
# A forward hook that is registered inside the compiled function fires.
layer = make_layer()


@torch.compile(backend="eager")
def function(x):
    layer.register_forward_hook(lambda module, args, output: output * 10)
    return layer(x)


print(function(torch.ones(1, 1)).item())

# %% also backward_pre_hook_after
# A full backward pre-hook that is added to a module after the first call of the compiled function that uses it stays
# silent: the gradient is the one without the hook.
layer = make_layer()
function = torch.compile(lambda x: layer(x), backend="eager")
function(torch.ones(1, 1))
layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
function(torch.ones(1, 1)).sum().backward()
print("weight.grad", layer.weight.grad)

# %% also saved_tensors_hooks_around
# Saved-tensor hooks around the call of a compiled function act as they do without `torch.compile`.
function = torch.compile(torch.square, backend="eager")
x = torch.tensor(2.0, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * 100, lambda tensor: tensor):
    y = function(x)
y.backward()
print("x.grad", x.grad)
