"""torch.autograd.graph.get_gradient_edge

Gives the node and the output number to which a tensor's gradient goes: the way to the node of a leaf, and to hooks on
it.
"""

import torch

# %% when leaf
# A leaf has no `grad_fn`; its edge leads to AccumulateGrad, whose pre-hooks run after the tensor hooks of the leaf.
w = torch.tensor(2.0, requires_grad=True)
node = torch.autograd.graph.get_gradient_edge(w).node
node.register_prehook(lambda outputs: print("node pre-hook", outputs, w.grad))
w.register_hook(lambda grad: print("tensor hook", grad))
print(w.grad_fn, node.name())
(w * 3).backward()

# %% arguments fields
# An edge is a named tuple. Its fields are:
edge = torch.autograd.graph.get_gradient_edge(torch.tensor(2.0, requires_grad=True) * 3)
print(edge._fields)
print(edge.node.name(), edge.output_nr)

# %% changes prehook
# A pre-hook of AccumulateGrad that returns something changes what is added to `.grad`.
w = torch.tensor(2.0, requires_grad=True)
node = torch.autograd.graph.get_gradient_edge(w).node
node.register_prehook(lambda outputs: (outputs[0] * 10,))
(w * 3).backward()
print("w.grad", w.grad)

# %% changes backward_from_edge
# A pass may begin at an edge instead of a tensor.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: print("c", grad))
edge = torch.autograd.graph.get_gradient_edge(c)
torch.autograd.backward(edge, torch.tensor(1.0))
print("a.grad", a.grad)

# %% silent autograd_grad
# `torch.autograd.grad(…, w)` executes no AccumulateGrad: hooks on this node stay silent.
w = torch.tensor(2.0, requires_grad=True)
node = torch.autograd.graph.get_gradient_edge(w).node
node.register_prehook(lambda outputs: print("node pre-hook", outputs))
print(torch.autograd.grad(w * 3, w))


# %% also edge_alone alone
# The graph of your own `autograd.Function` when only the edge is left: does the edge keep it?
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


a = torch.tensor(3.0, requires_grad=True)
c = Double.apply(a)
c.register_hook(lambda grad: print("c", grad))
edge = torch.autograd.graph.get_gradient_edge(c)
del c
print(torch.autograd.grad(edge, a, torch.tensor(1.0)))

# %% also no_grad_needed
# A tensor that does not require a gradient has no edge.
torch.autograd.graph.get_gradient_edge(torch.ones(2))
