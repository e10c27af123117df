"""Programs in whose backward something fails, planted where a number says: a node of torch's, a Function, or a hook."""

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
SAVING: dict[str, Op] = {
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
"""Operations that save what they are given or what they make, so that their nodes fail once that has changed."""
OTHERS: dict[str, Op] = {
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
OPS = {**SAVING, **OTHERS}
KINDS = ("changed", "changed", "changed", "function", "shape", "tensor_hook", "node_pre_hook", "node_post_hook")
KINDS += ("post_accumulate_hook", "wrong hook", "module_hook", "freed", "interrupt")


class Broken(torch.autograd.Function):
    """Raises in its backward, or gives back a gradient that does not fit."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, how: str) -> torch.Tensor:
        ctx.how = how
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        if ctx.how == "shape":
            return torch.ones(7), None
        raise KeyboardInterrupt if ctx.how == "interrupt" else ArithmeticError("planted")


def fail(*_: Any) -> None:
    raise ArithmeticError("planted")


def misfit(grad: torch.Tensor) -> torch.Tensor:
    return torch.ones(11)


class Fault:
    """One program: ``kind`` says what fails in it, ``length`` how many operations it has."""

    def __init__(self, number: int, most: int = 40) -> None:
        self.random = random.Random(number)
        self.kind = self.random.choice(KINDS)
        self.length = self.random.randint(2, most)

    def run(self, look: Callable[[torch.Tensor], None] = lambda root: None) -> None:
        """Build a graph, plant the fault, let ``look`` at the graph below its root, and go backward."""
        torch.manual_seed(0)
        leaves = [torch.rand(3, requires_grad=True) for _ in range(self.random.randint(1, 3))]
        made = list(leaves)
        at = self.random.randrange(self.length)
        spoilt: list[torch.Tensor] = []
        for place in range(self.length):
            made.append(self._next(made, place == at, spoilt))
        if self.kind == "post_accumulate_hook":
            self.random.choice(leaves).register_post_accumulate_grad_hook(fail)
        root = self.random.choice([made[-1], torch.stack(made[-3:]).sum(0)]).sum()
        if self.kind == "freed":
            made[len(leaves) + at].sum().backward()
        for tensor in spoilt:
            tensor.detach().add_(1)  # seen by the version that both share
        inputs = self.random.choice([None, None, [leaves[0]]])
        look(root)
        root.backward(inputs=inputs)

    def _next(self, made: list[torch.Tensor], here: bool, spoilt: list[torch.Tensor]) -> torch.Tensor:
        """One more operation; ``here`` is where the fault goes."""
        x, y = (self.random.choice(made[-4:]) for _ in range(2))
        if here and self.kind in ("function", "shape", "interrupt"):
            result: torch.Tensor = Broken.apply(x, self.kind)
            return result
        if here and self.kind == "module_hook":
            module = nn.Linear(3, 3)
            module.register_full_backward_hook(lambda *given: fail())
            return module(x)
        result = (SAVING if here and self.kind in ("changed", "freed") else OPS)[self._name(here)](x, y)
        if here and self.kind == "changed":
            spoilt += [x, y, result]
        if here and self.kind in ("tensor_hook", "wrong hook"):
            result.register_hook(fail if self.kind == "tensor_hook" else misfit)
        if here and self.kind in ("node_pre_hook", "node_post_hook") and result.grad_fn is not None:
            register = result.grad_fn.register_prehook if self.kind == "node_pre_hook" else result.grad_fn.register_hook
            register(fail)
        return result

    def _name(self, here: bool) -> str:
        return self.random.choice(sorted(SAVING if here and self.kind in ("changed", "freed") else OPS))


class Plain:
    """Sees without a recording in which node a pass ends, and what that was given."""

    def __init__(self) -> None:
        self.op: str | None = None
        self.given: list[Any] = []
        self._handles: list[Any] = []

    def look(self, root: torch.Tensor) -> None:
        """Watch every node below ``root``."""
        for node in graph.reachable_nodes([root.grad_fn] if root.grad_fn else []):
            self._handles.append(node.register_prehook(partial(self._begin, type(node).__name__)))
            self._handles.append(node.register_hook(self._end))

    def _begin(self, op: str, given: tuple[torch.Tensor | None, ...]) -> None:
        self.op, self.given = op, [None if grad is None else grad.tolist() for grad in given]

    def _end(self, *_: Any) -> None:
        self.op, self.given = None, []


def seen(number: int, most: int = 40) -> Plain:
    """The fault ``number`` without a recording."""
    plain = Plain()
    with suppress(RuntimeError, ArithmeticError, KeyboardInterrupt):
        Fault(number, most).run(plain.look)
    return plain


def told(number: int, most: int = 40) -> dict[str, Any]:
    """What a trace says of the fault ``number``: how it ended, where, in which hook, and what had arrived there."""
    fault = Fault(number, most)
    with hv.record() as trace:
        try:
            fault.run()
        except (RuntimeError, ArithmeticError, KeyboardInterrupt) as error:
            raised: str | None = f"{type(error).__name__}: {error}"
        else:
            raised = None
    failed = [row for row in trace.rows if row.kind == "exception"]
    last = failed[-1] if failed else None
    node = -1 if last is None else last.node
    steps = [row for row in trace.rows if row.pass_id == len(trace.roots) - 1]
    arrived = [
        (row.kind, row.output, None if row.after is None else trace.values[row.after][:4])
        for row in steps
        if row.node == node and row.kind in ("arrive", "seed", "unknown_hook", "aliased")
    ]
    return {
        "kind": fault.kind,
        "raised": raised,
        "node": None if last is None else [node, trace.ops[node] if node >= 0 else None],
        "hook": None if last is None or last.hook is None else trace.hook_rows[last.hook].name,
        "error": None if last is None else last.error,
        "arrived": arrived,
        "accumulated": sum(row.kind == "accumulate" for row in steps),
        "computed": sum(row.kind == "compute" for row in steps),
    }


if __name__ == "__main__":
    import json
    import sys

    first, count, most = map(int, sys.argv[1:])
    json.dump([told(number, most) for number in range(first, first + count)], sys.stdout)
