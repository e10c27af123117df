"""torch.autograd.Variable._execution_engine.queue_callback

Called inside a hook: runs a function at the end of the pass. It is undocumented; data-parallel wrappers use it.
"""

import torch
from torch.autograd import Variable

# %% when order
# After the last gradient of the pass was accumulated, before `backward()` returns.
a = torch.tensor(2.0, requires_grad=True)


def c_hook(grad):
    print("c_hook")
    Variable._execution_engine.queue_callback(lambda: print("callback, a.grad", a.grad))


c = a * 3
c.register_hook(c_hook)
c.backward()
print("backward is over")

# %% when every_call
# Once for each call, in the order of the calls.
a = torch.tensor(2.0, requires_grad=True)
engine = Variable._execution_engine
c = a * 3
c.register_hook(lambda grad: engine.queue_callback(lambda: print("first")))
a.register_hook(lambda grad: engine.queue_callback(lambda: print("second")))
c.backward()

# %% arguments none
# The function gets no argument.
a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: Variable._execution_engine.queue_callback(lambda *given: print(given)))
(a * 3).backward()

# %% changes leaf
# It may edit `.grad`, which is written by then; what it returns is ignored.
a = torch.tensor(2.0, requires_grad=True)
a.register_hook(lambda grad: Variable._execution_engine.queue_callback(lambda: a.grad.mul_(10)))
(a * 3).backward()
print("a.grad", a.grad)

# %% silent exception
# When the pass ends with an exception, it is not called.
a = torch.tensor(2.0, requires_grad=True)
c = a * 3
c.register_hook(lambda grad: Variable._execution_engine.queue_callback(lambda: print("callback")))
a.register_hook(lambda grad: 1 / 0)
c.backward()

# %% also next_pass
# It is not called in the next pass.
a = torch.tensor(2.0, requires_grad=True)
with a.register_hook(lambda grad: Variable._execution_engine.queue_callback(lambda: print("callback"))):
    (a * 3).backward()
(a * 3).backward()
print("a.grad", a.grad)

# %% also outside
# Outside a pass it is refused.
Variable._execution_engine.queue_callback(print)
