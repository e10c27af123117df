"""Random graphs with random hooks: a learner's engine and PyTorch's run the same ones, and their logs are compared."""

import random
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch

from hookviz.course import engine
from hookviz.course.judges import call_safely

GRAPHS = 300
"""How many graphs a learner's part of the engine is compared on."""


class SmallEngine:
    """Builds graphs with the engine of the lesson, some of whose parts may be a learner's."""

    def __init__(
        self, node: Any = None, value: Any = None, backward: Callable[..., Any] | None = None, module: Any = None
    ) -> None:
        self.leaf: Any = value or engine.Value
        if node is not None:
            self.leaf = type("Value", (self.leaf,), {"node_class": node})
        self.backward = backward or engine.backward
        self.module_class = module or engine.Module

    def node(self, value: Any) -> Any:
        return value.grad_fn

    def module(self, factor: Any) -> Any:
        """A module that multiplies by ``factor``."""
        return self.module_class(lambda x: x * factor)

    def register(self, module: Any, kind: str, hook: Callable[..., Any]) -> None:
        engine.register(getattr(module, f"{kind}_hooks"), hook)

    def number(self, value: Any) -> float:
        return float(getattr(value, "data", value))


REGISTER = {
    "forward_pre": "register_forward_pre_hook",
    "forward": "register_forward_hook",
    "backward_pre": "register_full_backward_pre_hook",
    "backward": "register_full_backward_hook",
}
"""Kind of module hook, as it appears in the log → torch's method that registers it."""


class _Scale(torch.nn.Module):
    """Multiplies by a parameter, as the function of the small module does."""

    def __init__(self, factor: torch.Tensor) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor


class TorchEngine:
    """Builds the same graphs with torch."""

    module = _Scale

    def leaf(self, number: float) -> torch.Tensor:
        return torch.tensor(number, dtype=torch.float64, requires_grad=True)

    def backward(self, tensor: torch.Tensor, grad: float) -> None:
        torch.autograd.backward(tensor, torch.tensor(grad, dtype=torch.float64), retain_graph=True)

    def node(self, tensor: torch.Tensor) -> Any:
        return torch.autograd.graph.get_gradient_edge(tensor).node

    def register(self, module: torch.nn.Module, kind: str, hook: Callable[..., Any]) -> None:
        getattr(module, REGISTER[kind])(hook)

    def number(self, value: torch.Tensor) -> float:
        return float(value.item())


def _numbers(given: Any) -> Any:
    return tuple(map(_numbers, given)) if isinstance(given, tuple) else float(given)


def _scaled(given: Any, factor: float) -> Any:
    return tuple(grad * factor for grad in given) if isinstance(given, tuple) else given * factor


class Program:
    """A random graph with hooks on it: the seed alone determines it, for either engine."""

    def __init__(self, engine: SmallEngine | TorchEngine, seed: int) -> None:
        self.engine = engine
        self.choose = random.Random(seed)
        self.log: list[Any] = []
        self.handles: list[Any] = []
        self.values = [engine.leaf(self.choose.uniform(-1, 1)) for _ in range(self.choose.randint(1, 4))]
        for _ in range(self.choose.randint(1, 12)):
            self.values.append(self._compute())
        # torch frees a leaf's node that nothing refers to, and creates a new one without the hooks.
        self.nodes = [engine.node(value) for value in self.values]

    def _compute(self) -> Any:
        """Compute a new value, mostly from recent ones, so that paths fork and join."""
        left, right = self.choose.choices(self.values[-self.choose.randint(1, 6) :], k=2)
        kind = self.choose.choice(["add", "multiply", "relu"])
        return left + right if kind == "add" else left * right if kind == "multiply" else left.relu()

    def run(self) -> list[Any]:
        """Run some backward passes, add and remove hooks between them, and return the log of hooks and gradients."""
        for _ in range(self.choose.randint(1, 3)):
            for _ in range(self.choose.randint(0, 10)):
                self._hook_somewhere()
            for handle in self.choose.sample(self.handles, len(self.handles) // 4):
                handle.remove()
            root = self.choose.choice([*self.values, *self.values[-1:] * 20])
            self.engine.backward(root, self.choose.choice([1.0, -0.5, 3.0]))
            self.log.append([None if kept is None else float(kept) for kept in map(self._kept, self.values)])
        return self.log

    def _kept(self, value: Any) -> Any:
        return value.grad if not isinstance(value, torch.Tensor) or value.is_leaf or value.retains_grad else None

    def _hook_somewhere(self) -> None:
        place = self.choose.randrange(len(self.values))
        kind = self.choose.choice(["tensor", "tensor", "retain", "pre", "post"])
        if kind == "retain":
            self.values[place].retain_grad()
        else:
            self._hook(kind, place, self.choose.choice(["look", "look", "scale", "scale", "once", "another", "off"]))

    def _hook(self, kind: str, place: int, does: str) -> None:
        """Register a hook that logs its gradients, and may scale them, remove itself or an older hook, or add one."""
        number, factor = len(self.handles), self.choose.choice([-1.0, 0.5, 2.0])
        target = self.choose.randrange(len(self.values))

        def observe(*given: Any) -> Any:
            self.log.append((kind, place, number, _numbers(given)))
            if does in ("once", "another"):
                self.handles[number].remove()
            if does == "another":
                self._hook(kind, target, "look")
            if does == "off":
                self.handles[number // 2].remove()
            return _scaled(given[0], factor) if does == "scale" else None

        home: Any = self.values[place] if kind == "tensor" else self.nodes[place]
        self.handles.append(home.register_prehook(observe) if kind == "pre" else home.register_hook(observe))


@cache
def _log_of_torch(seed: int) -> list[Any]:
    return Program(TorchEngine(), seed).run()


def find_disagreement(small: SmallEngine, seeds: range = range(GRAPHS)) -> list[Any] | str | None:
    """The log or error of an engine for the first seed on which it differs from torch; None if it never does."""
    return next((log for seed in seeds if (log := run_engine(small, seed)) != _log_of_torch(seed)), None)


def run_engine(small: SmallEngine, seed: int) -> list[Any] | str:
    """The log of a program, or what a learner's part raised."""
    log, error = call_safely(lambda: Program(small, seed).run())
    return error or log


def recognise(run: Callable[[Any, int], Any], part: Any, usual: Mapping[str, Any]) -> str | None:
    """The name of the usual mistake for which ``run`` returns the same as for a learner's part, with every seed."""
    remaining = dict(usual)
    for seed in range(GRAPHS):
        seen = _leave_out_addresses(run(part, seed))
        remaining = {
            name: mistaken for name, mistaken in remaining.items() if _leave_out_addresses(run(mistaken, seed)) == seen
        }
        if not remaining:
            return None
    return next(iter(remaining))


def _leave_out_addresses(seen: Any) -> Any:
    """Two errors are the same if they say the same, addresses apart."""
    return re.sub(r"0x[0-9a-f]+", "", seen) if isinstance(seen, str) else seen


# Modules with hooks of four kinds


def run_module_program(seed: int, module_class: Any = None) -> list[Any]:
    """Run a chain with a module that has random hooks, on torch or with the class of a small module; return the log."""
    run: Any = TorchEngine() if module_class is None else SmallEngine(module=module_class)
    choose, log = random.Random(seed), []
    x, factor, after = (run.leaf(choose.uniform(0.5, 2)) for _ in range(3))
    module = run.module(factor)

    def add_hook(kind: str, number: int) -> None:
        does, scale = choose.choice(["look", "scale"]), choose.choice([0.5, 2.0, 3.0])

        def hook(given: Any, *values: Any) -> Any:
            numbers = [
                [run.number(v) for v in value] if isinstance(value, tuple) else run.number(value) for value in values
            ]
            log.append((kind, number, given is module, numbers))
            if does == "look":
                return None
            if kind == "forward":
                return values[1] * run.leaf(scale)
            if kind == "forward_pre":
                return (values[0][0] * run.leaf(scale),)
            return tuple(value * scale for value in values[0])

        run.register(module, kind, hook)

    for number in range(choose.randint(1, 6)):
        add_hook(choose.choice([*REGISTER]), number)
    output = module(x) * after
    run.backward(output, 1.0)
    log.append(("numbers", run.number(output), run.number(x.grad), run.number(factor.grad)))
    return log
