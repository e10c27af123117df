"""torch.autograd.graph.Node.register_hook

Calls a function after a node of the graph (`tensor.grad_fn`) has computed its gradients.
"""

import torch

# %% when order
# After the node has computed, before the next node begins.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
e = c * 4
c.register_hook(lambda grad: print("tensor hook of c"))
e.grad_fn.register_hook(lambda inputs, outputs: print("node hook of e"))
c.grad_fn.register_hook(lambda inputs, outputs: print("node hook of c"))
e.backward()

# %% arguments inputs_and_outputs
# Two tuples: the gradients that the node computed for its inputs, and those that it got for its outputs.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0)
c = a * b
c.grad_fn.register_hook(lambda inputs, outputs: print(inputs, outputs))
c.backward()

# %% arguments after_tensor_hook
# The gradients of the outputs are those that the tensor hook returned.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: grad * 10)
c.grad_fn.register_hook(lambda inputs, outputs: print(inputs, outputs))
c.backward()

# %% changes return_value
# A returned tuple replaces the gradients of the inputs.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(5.0, requires_grad=True)
c = a * b
c.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1]))
c.backward()
print("a.grad", a.grad, "b.grad", b.grad)

# %% changes wrong_count
# A tuple of another length is refused.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(5.0, requires_grad=True)
c = a * b
c.grad_fn.register_hook(lambda inputs, outputs: (inputs[0],))
c.backward()

# %% silent stops_here
# `torch.autograd.grad(e, c)` does not execute the node that made `c`.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.grad_fn.register_hook(lambda inputs, outputs: print("node hook"))
print(torch.autograd.grad(c * 4, c))

# %% also new_version
# An in-place operation gives the tensor a new node; a hook on it does not see the old node, nor the old hook the new
# one.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
old = c.grad_fn
c.mul_(10)
print(old.name(), c.grad_fn.next_functions[0][0] is old)
c.grad_fn.register_hook(lambda inputs, outputs: print("new", inputs, outputs))
c.backward()

# %% also accumulate_grad
# On the node of a leaf (AccumulateGrad) it fires after `.grad` was written, after the post-accumulate hooks.
w = torch.tensor(2.0, requires_grad=True)
node = torch.autograd.graph.get_gradient_edge(w).node
node.register_hook(lambda inputs, outputs: print("node hook", inputs, outputs, w.grad))
node.register_prehook(lambda outputs: print("node pre-hook", outputs, w.grad))
w.register_post_accumulate_grad_hook(lambda w: print("post-accumulate", w.grad))
w.register_hook(lambda grad: print("tensor hook", grad))
(w * 3).backward()

# %% also accumulate_grad_gone
# The node of a leaf lives as long as somebody holds it or a graph uses it; its hooks go with it.
w = torch.tensor(2.0, requires_grad=True)
torch.autograd.graph.get_gradient_edge(w).node.register_hook(lambda inputs, outputs: print("node hook"))
(w * 3).backward()
print("w.grad", w.grad)


# %% also function_node
# The node of your own `autograd.Function` takes hooks, too.
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


a = torch.tensor(3.0, requires_grad=True)
c = Double.apply(a)
c.grad_fn.register_prehook(lambda outputs: print("node pre-hook", outputs))
c.grad_fn.register_hook(lambda inputs, outputs: print("node hook", inputs, outputs))
c.backward()

# %% also sequence_number
# The engine runs nodes with higher numbers first. Is the number to be had from Node itself?
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
e = c * 4
print(e.grad_fn._sequence_nr() > c.grad_fn._sequence_nr())
print(hasattr(torch.autograd.graph.Node, "_sequence_nr"))
