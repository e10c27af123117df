"""torch.autograd.graph.Node.register_prehook

Calls a function before a node of the graph (`tensor.grad_fn`) computes its gradients.
"""

import torch

# %% when order
# After the tensor hooks of the node's output, before the node computes.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_hook(lambda inputs, outputs: print("node hook"))
c.grad_fn.register_prehook(lambda outputs: print("node pre-hook"))
c.register_hook(lambda grad: print("tensor hook"))
c.backward()

# %% arguments outputs
# One argument: a tuple with the gradient of each output of the node.
x = torch.ones(2, 3, requires_grad=True)
y = x * 3
y.grad_fn.register_prehook(lambda outputs: print(type(outputs).__name__, [grad.shape for grad in outputs]))
y.sum().backward()

# %% arguments unused_output
# An output that the loss does not use has None in the tuple.
x = torch.tensor([1.0, 2.0], requires_grad=True)
first, second = x.unbind()
first.grad_fn.register_prehook(print)
first.backward()

# %% changes return_value
# A returned tuple replaces the gradients that the node computes with.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
c.backward()
print("a.grad", a.grad)

# %% changes wrong_count
# A tuple of another length is refused.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_prehook(lambda outputs: (outputs[0], outputs[0]))
c.backward()

# %% changes bare_tensor
# A tensor instead of a tuple.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_prehook(lambda outputs: outputs[0] * 10)
c.backward()
print("a.grad", a.grad)

# %% silent stops_here
# `torch.autograd.grad(c, c)` stops at `c`: its node is not executed, so its pre-hook stays silent; the tensor hook
# fires.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_prehook(lambda outputs: print("node pre-hook"))
c.register_hook(lambda grad: print("tensor hook"))
print(torch.autograd.grad(c * 4, c))

# %% silent not_reached
# A pass that does not reach the node.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_prehook(lambda outputs: print("node pre-hook"))
(a * 5).backward()
print("a.grad", a.grad)

# %% also exception
# An exception in it ends the pass.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_prehook(lambda outputs: 1 / 0)
c.backward()
