"""Programs with a fault in backward: a node of torch, a Function or a hook fails at a place set by a seed."""

import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import nn

import hookviz as hv
from hookviz.autograd import graph

Op = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
SAVING_OPS: dict[str, Op] = {
    "mul": torch.mul,
    "div": lambda x, y: x / (y * y + 1),
    "exp": lambda x, _: x.exp(),
    "tanh": lambda x, _: x.tanh(),
    "sigmoid": lambda x, _: x.sigmoid(),
    "sin": lambda x, _: x.sin(),
    "pow": lambda x, _: x**2,
    "softmax": lambda x, _: x.softmax(0),
    "matmul": lambda x, y: torch.outer(x, y) @ x,
    "max": lambda x, y: torch.maximum(x, y),
}
"""Operations that save an input or output, so that their nodes fail after it is changed in place."""
OTHER_OPS: dict[str, Op] = {
    "add": torch.add,
    "sub": torch.sub,
    "cat": lambda x, y: torch.cat([x, y])[: len(x)],
    "stack": lambda x, y: torch.stack([x, y]).sum(0),
    "unbind": lambda x, y: torch.stack([x, y]).unbind()[1],
    "relu": lambda x, _: x.relu(),
    "flip": lambda x, _: x.flip(0),
    "sum": lambda x, y: x.sum() + y,
    "view": lambda x, _: x.view(1, -1).squeeze(0),
}
OPS = {**SAVING_OPS, **OTHER_OPS}
KINDS = ("changed", "changed", "changed", "function", "shape", "tensor_hook", "node_pre_hook", "node_post_hook")
KINDS += ("post_accumulate_hook", "wrong hook", "module_hook", "freed", "interrupt")


class Broken(torch.autograd.Function):
    """A function whose backward raises, or returns a gradient of the wrong shape."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, kind: str) -> torch.Tensor:
        ctx.kind = kind
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        if ctx.kind == "shape":
            return torch.ones(7), None
        raise KeyboardInterrupt if ctx.kind == "interrupt" else ArithmeticError("planted")


def fail(*_: Any) -> None:
    raise ArithmeticError("planted")


def misfit(grad: torch.Tensor) -> torch.Tensor:
    return torch.ones(11)


class Fault:
    def __init__(self, number: int, max_length: int = 40) -> None:
        self.random = random.Random(number)
        self.kind = self.random.choice(KINDS)
        self.length = self.random.randint(2, max_length)

    def run(self, watch_graph: Callable[[torch.Tensor], None] = lambda root: None) -> None:
        torch.manual_seed(0)
        leaves = [torch.rand(3, requires_grad=True) for _ in range(self.random.randint(1, 3))]
        tensors = list(leaves)
        fault_index = self.random.randrange(self.length)
        changed_tensors: list[torch.Tensor] = []
        for index in range(self.length):
            tensors.append(self._next(tensors, index == fault_index, changed_tensors))
        if self.kind == "post_accumulate_hook":
            self.random.choice(leaves).register_post_accumulate_grad_hook(fail)
        root = self.random.choice([tensors[-1], torch.stack(tensors[-3:]).sum(0)]).sum()
        if self.kind == "freed":
            tensors[len(leaves) + fault_index].sum().backward()
        for tensor in changed_tensors:
            tensor.detach().add_(1)  # the version counter, which both share, shows the change
        inputs = self.random.choice([None, None, [leaves[0]]])
        watch_graph(root)
        root.backward(inputs=inputs)

    def _next(self, tensors: list[torch.Tensor], is_fault: bool, changed_tensors: list[torch.Tensor]) -> torch.Tensor:
        """Add an operation; it gets the fault if ``is_fault``."""
        x, y = (self.random.choice(tensors[-4:]) for _ in range(2))
        if is_fault and self.kind in ("function", "shape", "interrupt"):
            result: torch.Tensor = Broken.apply(x, self.kind)
            return result
        if is_fault and self.kind == "module_hook":
            module = nn.Linear(3, 3)
            module.register_full_backward_hook(lambda *given: fail())
            return module(x)
        result = (SAVING_OPS if is_fault and self.kind in ("changed", "freed") else OPS)[self._name(is_fault)](x, y)
        if is_fault and self.kind == "changed":
            changed_tensors += [x, y, result]
        if is_fault and self.kind in ("tensor_hook", "wrong hook"):
            result.register_hook(fail if self.kind == "tensor_hook" else misfit)
        if is_fault and self.kind in ("node_pre_hook", "node_post_hook") and result.grad_fn is not None:
            register = result.grad_fn.register_prehook if self.kind == "node_pre_hook" else result.grad_fn.register_hook
            register(fail)
        return result

    def _name(self, is_fault: bool) -> str:
        return self.random.choice(sorted(SAVING_OPS if is_fault and self.kind in ("changed", "freed") else OPS))


class NodeObserver:
    """Finds without a recording the node in which a pass fails, and the gradients that it received."""

    def __init__(self) -> None:
        self.op: str | None = None
        self.given: list[Any] = []
        self._handles: list[Any] = []

    def watch(self, root: torch.Tensor) -> None:
        for node in graph.reachable_nodes([root.grad_fn] if root.grad_fn else []):
            self._handles.append(node.register_prehook(partial(self._begin, type(node).__name__)))
            self._handles.append(node.register_hook(self._end))

    def _begin(self, op: str, given: tuple[torch.Tensor | None, ...]) -> None:
        self.op, self.given = op, [None if grad is None else grad.tolist() for grad in given]

    def _end(self, *_: Any) -> None:
        self.op, self.given = None, []


def run_unrecorded(number: int, max_length: int = 40) -> NodeObserver:
    observer = NodeObserver()
    with suppress(RuntimeError, ArithmeticError, KeyboardInterrupt):
        Fault(number, max_length).run(observer.watch)
    return observer


def run_recorded(number: int, max_length: int = 40) -> dict[str, Any]:
    """Record the fault ``number``; return what the trace says about its error, node, hook and received gradients."""
    fault = Fault(number, max_length)
    with hv.record() as trace:
        try:
            fault.run()
        except (RuntimeError, ArithmeticError, KeyboardInterrupt) as error:
            raised: str | None = f"{type(error).__name__}: {error}"
        else:
            raised = None
    data = trace._data
    found: dict[str, Any] = {"kind": fault.kind, "raised": raised, "op": None, "hook": None, "error": None}
    exceptions = [row for row in data.rows if row.kind == "exception"]
    if not exceptions:
        return found
    last = exceptions[-1]
    node = last.node
    arrived = {
        row.output: data.values[row.after][3]
        for row in data.rows
        if row.pass_id == len(data.roots) - 1 and row.node == node and row.after is not None
        if row.kind in ("arrive", "seed", "unknown_hook", "aliased")
    }
    return found | {
        "op": data.ops[node] if node >= 0 else None,
        "hook": None if last.hook is None else data.hook_rows[last.hook].name,
        "error": last.error,
        "arrived": arrived,
    }
