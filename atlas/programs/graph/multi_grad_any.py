"""torch.autograd.graph.register_multi_grad_hook

With `mode="any"`: calls a function once per pass, when the first of the tensors gets its gradient.
"""

import torch
from torch.autograd.graph import register_multi_grad_hook

# %% when order
# At the first gradient of the pass, whichever tensor it belongs to.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
c = a * b
register_multi_grad_hook([a, b, c], lambda grad: print("any", grad), mode="any")
for name, tensor in [("a", a), ("b", b), ("c", c)]:
    tensor.register_hook(lambda grad, name=name: print(name, grad))
(c * 4).backward()

# %% when every_pass
# Once in each pass.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
register_multi_grad_hook([a, b], lambda grad: print("any", grad), mode="any")
(a * b).backward()
(a * 5).backward()

# %% arguments gradient
# One argument: that gradient, a tensor and not a list.
a = torch.ones(2, requires_grad=True)
register_multi_grad_hook([a], lambda grad: print(type(grad).__name__, grad.shape), mode="any")
(a * 3).sum().backward()

# %% changes return_value
# What it returns is ignored.
a = torch.tensor(2.0, requires_grad=True)
register_multi_grad_hook([a], lambda grad: grad * 10, mode="any")
(a * 3).backward()
print("a.grad", a.grad)

# %% silent none_reached
# It stays silent when the pass reaches none of the tensors.
a = torch.tensor(2.0, requires_grad=True)
b = torch.tensor(3.0, requires_grad=True)
register_multi_grad_hook([a], lambda grad: print("any", grad), mode="any")
(b * 3).backward()
print("a.grad", a.grad)

# %% also exception
# When the function raises, it does not fire for a later tensor of the same pass: the pass ends.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
register_multi_grad_hook([a, c], lambda grad: 1 / 0, mode="any")
try:
    c.backward()
finally:
    print("a.grad", a.grad)
