"""Small autograd programs as plain data, and a Hypothesis strategy for them; `machine.py` runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from hypothesis import strategies as st
from torch import Tensor

from .silent_hooks import SILENT

PLACES = ("tensor", "tensor", "post_accumulate", "node_pre", "node_post", "multi", "retain")
ACTIONS = (
    *("keep", "same", "edit", "edit data", "replace", "hold", "raise", "wrong shape", "wrong type"),
    *("remove itself", "remove another", "register another", "retain", "nested"),
)


@dataclass(frozen=True)
class Leaf:
    """A leaf tensor, possibly with an earlier gradient."""

    shape: int
    start: int
    needs_grad: bool
    has_grad: bool


@dataclass(frozen=True)
class Op:
    """An operation on the tensors at `first` and `second`, counted from the newest."""

    name: str
    first: int
    second: int


@dataclass(frozen=True)
class Hook:
    """A hook registration: its kind, its tensor, its action, and the target of the action."""

    place: str
    target: int
    action: str
    other: int


@dataclass(frozen=True)
class Silent:
    """A construction of `silent_hooks.py`, which should keep a hook from firing."""

    kind: str
    target: int


@dataclass(frozen=True)
class Remove:
    """A handle's `remove()`, between passes."""

    handle: int


@dataclass(frozen=True)
class Drop:
    target: int


@dataclass(frozen=True)
class Pass:
    kind: str
    roots: tuple[int, ...]
    inputs: tuple[int, ...]
    retain: bool
    create: bool


Step: TypeAlias = Op | Hook | Silent | Remove | Drop | Pass


@dataclass(frozen=True)
class Program:
    leaves: tuple[Leaf, ...]
    steps: tuple[Step, ...]

    @property
    def has_modules(self) -> bool:
        return any(isinstance(step, Silent) and step.kind.startswith("module") for step in self.steps)


class Halves(torch.autograd.Function):
    """A custom function with two outputs, one of which may stay unused."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(a, b)
        return a * b, a - b

    @staticmethod
    def backward(ctx: Any, one: Tensor, two: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        a, b = ctx.saved_tensors
        return (one * b + two).sum_to_size(a.shape), (one * a - two).sum_to_size(b.shape)


def as_matrix(a: Tensor) -> Tensor:
    return a.expand(2, 2)


def first_row(a: Tensor) -> Tensor:
    return as_matrix(a)[0]


def multiply_in_no_grad(a: Tensor, b: Tensor) -> Tensor:
    """Multiply without recording in the graph."""
    with torch.no_grad():
        return a * b


def edit_in_no_grad(a: Tensor, b: Tensor) -> Tensor:
    """Change a tensor in place without recording in the graph."""
    with torch.no_grad():
        return a.add_(1)


OPS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "square": lambda a, b: a**2,
    "neg": lambda a, b: -a,
    "exp": lambda a, b: a.exp(),
    "log": lambda a, b: a.log(),
    "sin": lambda a, b: a.sin(),
    "tanh": lambda a, b: a.tanh(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "relu": lambda a, b: a.relu(),
    "softmax": lambda a, b: as_matrix(a).softmax(1),
    "dropout": lambda a, b: torch.dropout(a, 0.5, True),
    "matmul": lambda a, b: as_matrix(a) @ as_matrix(b),
    "diamond": lambda a, b: a * 2 + a * b,
    "sum": lambda a, b: a.sum(),
    "mean": lambda a, b: as_matrix(a).mean(0),
    "max": lambda a, b: as_matrix(a).max(1).values,
    "cumsum": lambda a, b: as_matrix(a).cumsum(0),
    "where": lambda a, b: torch.where(a > b, a, b),
    "index": lambda a, b: first_row(a)[torch.tensor([1, 1])],
    "expand": lambda a, b: as_matrix(a),
    "reshape": lambda a, b: as_matrix(a).reshape(4).reshape(2, 2),
    "transpose": lambda a, b: as_matrix(a).t(),
    "select": lambda a, b: as_matrix(a)[:, 1],
    "stack": lambda a, b: torch.stack([first_row(a), first_row(b)]),
    "cat": lambda a, b: torch.cat([first_row(a), first_row(b)]).reshape(2, 2),
    "unbind": lambda a, b: as_matrix(a).unbind(),
    "split": lambda a, b: as_matrix(a).split(1),
    "clone": lambda a, b: a.clone(),
    "detach": lambda a, b: a.detach(),
    "no_grad": multiply_in_no_grad,
    "single": lambda a, b: a.float().double(),
    "complex": lambda a, b: torch.complex(a, a * 2).abs(),
    "halves": Halves.apply,
    "add_": lambda a, b: a.add_(b),
    "mul_": lambda a, b: a.mul_(b),
    "relu_": lambda a, b: a.relu_(),
    "copy_": lambda a, b: a.copy_(b),
    "edit view": lambda a, b: a[..., :1].mul_(3),
    "edit in no_grad": edit_in_no_grad,
}

IN_PLACE = [name for name in OPS if name.endswith("_") or name.startswith("edit")]

indices = st.integers(0, 7)
recent_indices = st.sampled_from((0, 0, 1, 0, 2, 3, 1, 5))


def leaf_strategy(needs_grad: bool) -> st.SearchStrategy[Leaf]:
    return st.builds(Leaf, st.integers(0, 2), st.integers(-2, 3), st.just(needs_grad), st.booleans())


def leaves_strategy() -> st.SearchStrategy[tuple[Leaf, ...]]:
    """Return a strategy for a few leaves, the first of which always requires a gradient."""
    more = st.lists(st.one_of(leaf_strategy(True), leaf_strategy(False)), max_size=2)
    return st.builds(lambda first, others: (first, *others), leaf_strategy(True), more)


def op_strategy() -> st.SearchStrategy[Op]:
    """Return a strategy for operations, mostly on recent tensors."""
    return st.builds(Op, st.sampled_from(tuple(OPS)), recent_indices, indices)


def hook_strategy() -> st.SearchStrategy[Hook]:
    return st.builds(Hook, st.sampled_from(PLACES), recent_indices, st.sampled_from(ACTIONS), indices)


def silent_strategy() -> st.SearchStrategy[Silent]:
    """Return a strategy for constructions that keep a hook from firing."""
    return st.builds(Silent, st.sampled_from(tuple(SILENT)), indices)


def pass_strategy() -> st.SearchStrategy[Pass]:
    several = st.lists(recent_indices, min_size=1, max_size=3).map(tuple)
    kinds = st.sampled_from(("backward", "backward", "inputs", "grad"))
    often, seldom = st.sampled_from((True, True, False)), st.sampled_from((False, False, True))
    return st.builds(Pass, kinds, several, several, often, seldom)


def round_strategy() -> st.SearchStrategy[tuple[Any, ...]]:
    """Return a strategy for operations and hooks in any order, followed by a pass."""
    rare = st.one_of(st.builds(Remove, indices), st.builds(Drop, recent_indices), op_strategy(), silent_strategy())
    begin = st.lists(op_strategy(), min_size=1, max_size=3)
    mixed = st.lists(st.one_of(hook_strategy(), hook_strategy(), op_strategy(), rare), min_size=4, max_size=12)
    return st.builds(lambda *parts: (*parts[0], *parts[1], parts[2]), begin, mixed, pass_strategy())


def program_strategy() -> st.SearchStrategy[Program]:
    rounds = st.lists(round_strategy(), min_size=1, max_size=3)
    late = st.lists(st.one_of(hook_strategy(), silent_strategy()), max_size=2)
    steps = st.builds(lambda several, last: (*(step for steps in several for step in steps), *last), rounds, late)
    return st.builds(Program, leaves_strategy(), steps)
