"""The engine that lesson 10 builds agrees with torch: the same gradients, and the same hooks in the same order."""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

LESSON = Path(__file__).parents[2] / "notebooks" / "10_under_the_hood.ipynb"


def engine_cells() -> list[str]:
    """The sources of the cells that make up the engine."""
    notebook = nbformat.read(LESSON, as_version=4)
    return [cell.source for cell in notebook.cells if "engine" in cell.metadata.get("tags", ())]


SOURCE = "\n".join(engine_cells())


class LessonEngine:
    """Builds graphs with the lesson's engine."""

    def __init__(self, source: str = SOURCE) -> None:
        namespace: dict[str, Any] = {"torch": torch}
        exec(source, namespace)
        self.leaf, self.backward = namespace["Value"], namespace["backward"]

    def node(self, value: Any) -> Any:
        return value.grad_fn

    def join(self, *values: Any) -> Any:
        """The sum of many values as one node."""
        return self.leaf(sum(value.data for value in values), lambda grad: (grad,) * len(values), *values)


class Join(torch.autograd.Function):
    """The sum of many tensors as one node."""

    @staticmethod
    def forward(ctx: Any, *values: torch.Tensor) -> Any:
        ctx.count = len(values)
        return sum(values)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return (grad,) * ctx.count


class TorchEngine:
    """Builds the same graphs with torch."""

    join = Join.apply

    def leaf(self, number: float) -> torch.Tensor:
        return torch.tensor(number, dtype=torch.float64, requires_grad=True)

    def backward(self, tensor: torch.Tensor, grad: float) -> None:
        torch.autograd.backward(tensor, torch.tensor(grad, dtype=torch.float64), retain_graph=True)

    def node(self, tensor: torch.Tensor) -> Any:
        return torch.autograd.graph.get_gradient_edge(tensor).node


def numbers(given: Any) -> Any:
    return tuple(map(numbers, given)) if isinstance(given, tuple) else float(given)


def scaled(given: Any, factor: float) -> Any:
    return tuple(grad * factor for grad in given) if isinstance(given, tuple) else given * factor


class Program:
    """A random graph with hooks on it: the seed alone determines it, for either engine."""

    def __init__(self, engine: LessonEngine | TorchEngine, seed: int, max_fan_in: int) -> None:
        self.engine, self.max_fan_in = engine, max_fan_in
        self.choose = random.Random(seed)
        self.log: list[Any] = []
        self.handles: list[Any] = []
        self.values = [engine.leaf(self.choose.uniform(-1, 1)) for _ in range(self.choose.randint(1, 4))]
        for _ in range(self.choose.randint(1, 12)):
            self.values.append(self.computed())
        # torch frees a leaf's node that nothing refers to, and creates a new one without the hooks.
        self.nodes = [engine.node(value) for value in self.values]

    def computed(self) -> Any:
        """A new value, mostly from recent ones, so that paths fork and join."""
        left, right = self.choose.choices(self.values[-self.choose.randint(1, 6) :], k=2)
        kind = self.choose.choice(["add", "multiply", "relu", "join"][: 4 if self.max_fan_in > 2 else 3])
        if kind == "join":
            return self.engine.join(*self.choose.choices(self.values, k=self.choose.randint(3, self.max_fan_in)))
        return left + right if kind == "add" else left * right if kind == "multiply" else left.relu()

    def run(self) -> list[Any]:
        """Run some backward passes, add and remove hooks between them, and return the log of hooks and gradients."""
        for _ in range(self.choose.randint(1, 3)):
            for _ in range(self.choose.randint(0, 10)):
                self.hook_somewhere()
            for handle in self.choose.sample(self.handles, len(self.handles) // 4):
                handle.remove()
            root = self.choose.choice([*self.values, *self.values[-1:] * 20])
            self.engine.backward(root, self.choose.choice([1.0, -0.5, 3.0]))
            self.log.append([None if kept is None else float(kept) for kept in map(self.kept, self.values)])
        return self.log

    def kept(self, value: Any) -> Any:
        return value.grad if not isinstance(value, torch.Tensor) or value.is_leaf or value.retains_grad else None

    def hook_somewhere(self) -> None:
        place = self.choose.randrange(len(self.values))
        kind = self.choose.choice(["tensor", "tensor", "retain", "pre", "post"])
        if kind == "retain":
            self.values[place].retain_grad()
        else:
            self.hook(kind, place, self.choose.choice(["look", "look", "scale", "scale", "once", "another", "off"]))

    def hook(self, kind: str, place: int, does: str) -> None:
        """Register a hook that logs its gradients, and may scale them, remove itself or an older hook, or add one."""
        number, factor = len(self.handles), self.choose.choice([-1.0, 0.5, 2.0])
        target = self.choose.randrange(len(self.values))

        def observe(*given: Any) -> Any:
            self.log.append((kind, place, number, numbers(given)))
            if does in ("once", "another"):
                self.handles[number].remove()
            if does == "another":
                self.hook(kind, target, "look")
            if does == "off":
                self.handles[number // 2].remove()
            return scaled(given[0], factor) if does == "scale" else None

        home = self.values[place] if kind == "tensor" else self.nodes[place]
        self.handles.append(home.register_prehook(observe) if kind == "pre" else home.register_hook(observe))


def run_program(engine: LessonEngine | TorchEngine, seed: int, max_fan_in: int = 2) -> list[Any]:
    return Program(engine, seed, max_fan_in).run()


def disagreements(source: str, seeds: range, max_fan_in: int = 2) -> Iterator[int]:
    """Yield the seeds of graphs on which the engine in ``source`` differs from torch or raises an error."""
    lesson_engine, torch_engine = LessonEngine(source), TorchEngine()
    for seed in seeds:
        try:
            if run_program(lesson_engine, seed, max_fan_in) != run_program(torch_engine, seed, max_fan_in):
                yield seed
        except (KeyError, RuntimeError, TypeError):
            yield seed


def test_engine_has_the_number_of_lines_that_the_readme_states() -> None:
    assert [source.split()[1] for source in engine_cells()[1:]] == [
        "through(hooks,",
        "Node:",
        "Value:",
        "backward(value,",
    ]
    lines = [line for line in SOURCE.splitlines() if line.strip()]
    assert f"an autograd engine with hooks in {len(lines)} lines" in (LESSON.parents[1] / "README.md").read_text(
        "utf-8"
    )


def test_engine_agrees_with_torch_on_gradients_and_on_the_order_of_hooks() -> None:
    assert list(disagreements(SOURCE, range(1_000))) == []


@pytest.mark.skipif(sys.platform != "linux", reason="among leaves, torch's order is that of the C++ library's heap")
def test_engine_agrees_with_torch_if_one_node_makes_many_leaves_ready() -> None:
    assert list(disagreements(SOURCE, range(300), max_fan_in=9)) == []


def test_random_graphs_have_hooks_of_every_kind_and_nodes_that_wait() -> None:
    programs = [Program(LessonEngine(), seed, max_fan_in=2) for seed in range(200)]
    logs = [program.run() for program in programs]
    fired = [entry for log in logs for entry in log if isinstance(entry, tuple)]
    places = Counter((kind, place < 4) for kind, place, _, _ in fired)
    assert len(places) == 6 and min(places.values()) > 50
    assert sum(isinstance(entry, list) for log in logs for entry in log) > 350  # passes
    arrows = [Counter(target for node in program.nodes for target in node.next_nodes) for program in programs]
    assert sum(count > 1 for counts in arrows for count in counts.values()) > 400  # nodes that must wait


FAULTS = {
    "the oldest node goes first": ("self.number > other.number", "self.number < other.number"),
    "leaves go last": ('float("inf")', "-1"),
    "the number of a node does not count": ("next(Node.numbers) if", "0 if"),
    "a node does not wait": ("arrows[target] == 0", "True"),
    "what arrived before is forgotten": ("buffer.get(target, 0.0) + part", "part"),
    "a leaf's gradient is overwritten": ("grad if self.grad is None else self.grad + grad", "grad"),
    "a leaf retains its gradient a second time": (
        "{0: self.accumulate} if self.grad_fn.next_nodes else {}",
        "{0: self.accumulate}",
    ),
    "retain_grad comes first": (
        "grad = through(self.tensor_hooks, grad)\n        grad = through(self.retain, grad)",
        "grad = through(self.retain, grad)\n        grad = through(self.tensor_hooks, grad)",
    ),
    "retain_grad comes after the pre-hooks": (
        "grad = through(self.retain, grad)\n        (grad,) = through(self.pre, (grad,))",
        "(grad,) = through(self.pre, (grad,))\n        grad = through(self.retain, grad)",
    ),
    "what pre-hooks return is lost": ("(grad,) = through(self.pre, (grad,))", "through(self.pre, (grad,))"),
    "what hooks return is lost": ("value if returned is None else returned", "value"),
    "a hook cannot take itself off": ("list(hooks.values())", "hooks.values()"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_comparison_with_torch_detects_a_faulty_engine(fault: str) -> None:
    right, wrong = FAULTS[fault]
    assert SOURCE.count(right) == 1
    assert next(disagreements(SOURCE.replace(right, wrong), range(100)), None) is not None
