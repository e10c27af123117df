"""torch.autograd.graph.node_creation_hook

Inside its `with` block, calls a function with each node of the graph that is made.
"""

import torch
from torch.autograd.graph import node_creation_hook

# %% when order
# In forward, when a node is made: AccumulateGrad of a leaf at the first operation that uses the leaf, then the
# operation's.
a = torch.tensor(2.0, requires_grad=True)
with node_creation_hook(lambda node: print(node.name())):
    c = a * 3
    print("c is there")
    e = c.exp()
e.backward()

# %% when nested
# Of two nested blocks both act, the outer one first.
a = torch.tensor(2.0, requires_grad=True)
with node_creation_hook(lambda node: print("outer", node.name())):
    with node_creation_hook(lambda node: print("inner", node.name())):
        c = a * 3

# %% arguments node
# One argument: the node, which takes hooks.
a = torch.tensor(2.0, requires_grad=True)


def on_node(node):
    print(type(node).__name__)
    node.register_prehook(lambda outputs: print("pre-hook of", node.name(), outputs))


with node_creation_hook(on_node):
    c = a * 3
c.backward()

# %% arguments next_functions
# The node is complete: it knows the nodes below it.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
with node_creation_hook(lambda node: print(node.name(), node.next_functions)):
    e = c.exp()
print(e.grad_fn.next_functions[0][0].name())

# %% changes return_value
# It must return None.
a = torch.tensor(2.0, requires_grad=True)
with node_creation_hook(lambda node: "anything"):
    c = a * 3

# %% silent no_grad
# Without a graph there are no nodes.
a = torch.tensor(2.0, requires_grad=True)
with node_creation_hook(lambda node: print(node.name())), torch.no_grad():
    c = a * 3
print(c.grad_fn)

# %% silent outside
# Nodes that were made before the block do not count, nor does a leaf that no operation uses.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
with node_creation_hook(lambda node: print(node.name())):
    c.backward()
    torch.tensor(2.0, requires_grad=True)
print("a.grad", a.grad)


# %% also function
# The node of your own `autograd.Function`.
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


a = torch.tensor(2.0, requires_grad=True)
with node_creation_hook(lambda node: print(node.name())):
    Double.apply(a)

# %% also exception
# An exception in it reaches the line of the operation.
a = torch.tensor(2.0, requires_grad=True)
with node_creation_hook(lambda node: 1 / 0):
    a * 3
