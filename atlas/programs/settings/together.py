"""torch.Tensor.backward

All kinds of hooks at once: in which order they run in one backward pass.
"""

import torch
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook

# %% also one_layer
# A layer whose input requires a gradient, with a hook of each kind.
layer = torch.nn.Linear(1, 1, bias=False)
x = torch.ones(1, 1, requires_grad=True)
layer.register_full_backward_pre_hook(lambda module, grad_output: print("module full_backward_pre"))
layer.register_full_backward_hook(lambda module, grad_input, grad_output: print("module full_backward"))
layer.weight.register_hook(lambda grad: print("tensor hook of weight"))
layer.weight.register_post_accumulate_grad_hook(lambda weight: print("post-accumulate hook of weight"))
x.register_hook(lambda grad: print("tensor hook of input"))
y = layer(x)
y.register_hook(lambda grad: print("tensor hook of output"))
y.sum().backward()

# %% also one_leaf
# A leaf with a hook of each kind, registered in the opposite order.
w = torch.tensor(2.0, requires_grad=True)
node = get_gradient_edge(w).node
node.register_hook(lambda inputs, outputs: print("node hook"))
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate hook"))
node.register_prehook(lambda outputs: print("node pre-hook"))
register_multi_grad_hook([w], lambda grads: print("multi-grad hook"))
w.register_hook(lambda grad: print("tensor hook"))
(w * 3).backward()

# %% also one_intermediate
# An intermediate tensor with a hook of each kind, registered in the opposite order.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_hook(lambda inputs, outputs: print("node hook"))
c.grad_fn.register_prehook(lambda outputs: print("node pre-hook, c.grad", c.grad))
c.retain_grad()
c.register_hook(lambda grad: print("tensor hook, c.grad", c.grad))
c.backward()
