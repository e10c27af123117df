"""An interpreter for the programs, which tells everything that a person could see of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook

from .compare import (
    Watch,
    bits,
    draw_from,
    failure,
    gradient,
    hooks_left,
    plain,
    quiet,
    sharing,
    state,
    storage,
    uncollected,
    warned,
)
from .programs import IN_PLACE, OPS, Drop, Hook, Leaf, Op, Pass, Program, Remove

SHAPES = ((), (2,), (2, 2))
REGISTERED_LATER = ("tensor", "post_accumulate", "node_pre", "node_post", "multi")


def run_program(program: Program, watch: Watch = plain, whole: bool = False) -> dict[str, Any]:
    """Run a program, with the watcher around all of it or around each pass, and report what can be seen."""
    machine = Machine(plain if whole else watch)
    draw_from(0)
    with quiet() as caught, uncollected():
        with watch() if whole else nullcontext():
            machine.run(program)
        report = machine.report() | {"warnings": warned(caught)}
    machine.let_go()
    return report


class Machine:
    """Runs a program and keeps everything that a person could have kept."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.pool: list[Tensor] = []
        self.leaves: list[Tensor] = []
        self.held: list[Tensor] = []
        self.retaining: list[Tensor] = []
        self.handles: list[Any] = []
        self.log: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.nested = False

    def run(self, program: Program) -> None:
        """Take every step; one that raises is logged, and the program goes on."""
        for leaf in program.leaves:
            self.add_leaf(leaf)
        for number, step in enumerate(program.steps):
            try:
                self.take(step)
            except Exception as error:
                self.log.append((number, failure(error)))
                self.counts[f"{type(step).__name__} raised"] += 1

    def add_leaf(self, leaf: Leaf) -> None:
        """Make a leaf; among its numbers are zeros with a sign."""
        shape = torch.Size(SHAPES[leaf.shape])
        values = (torch.arange(shape.numel(), dtype=torch.float64) + leaf.start) * -0.75
        tensor = values.reshape(shape).requires_grad_(leaf.needs_grad)
        if leaf.has_grad and leaf.needs_grad:
            tensor.grad = torch.full_like(tensor, 0.5, requires_grad=False)
        self.leaves.append(tensor)
        self.pool.append(tensor)

    def take(self, step: Op | Hook | Remove | Drop | Pass) -> None:
        """Take one step."""
        if isinstance(step, Op):
            self.operate(step)
        elif isinstance(step, Hook):
            self.register(step)
        elif isinstance(step, Pass):
            self.go_back(step)
        elif isinstance(step, Remove) and self.handles:
            self.handles[step.handle % len(self.handles)].remove()
        elif isinstance(step, Drop) and len(self.pool) > 1:
            self.pool.pop(-1 - step.target % len(self.pool))

    def operate(self, op: Op) -> None:
        """Compute something and put it with the other tensors."""
        if op.name in IN_PLACE and storage(pick(self.pool, op.first)) in map(storage, self.retaining):
            # torch 2.13 now and then crashes when a tensor that retains its gradient is edited through a view.
            return
        made = OPS[op.name](pick(self.pool, op.first), pick(self.pool, op.second))
        self.pool.extend(made if isinstance(made, tuple) else (made,))
        self.counts[op.name] += 1

    def wanting(self) -> list[Tensor]:
        """Return the tensors that a gradient can reach, or leaves if none is left."""
        return [tensor for tensor in self.pool if tensor.requires_grad] or self.wanting_leaves()

    def wanting_leaves(self) -> list[Tensor]:
        """Return the leaves that a gradient can reach, or all if there is none."""
        return [tensor for tensor in self.leaves if tensor.requires_grad] or self.leaves

    def register(self, step: Hook) -> None:
        """Put a hook where the step says."""
        tensor = pick(self.wanting_leaves() if step.place == "post_accumulate" else self.wanting(), step.target)
        # torch 2.13 crashes when a hook comes to a view whose base has changed and whose grad_fn nobody has read since.
        self.log.append(tensor.grad_fn is None)
        if step.place == "retain":
            tensor.retain_grad()
            self.retaining.append(tensor)
            return
        self.handles.append(REGISTER[step.place](tensor, self.hook(step)))

    def hook(self, step: Hook) -> Callable[..., Any]:
        """Return a function that logs what it sees and does what the step says."""
        number = len(self.handles)

        def hook(*values: Any) -> Any:
            self.log.append((hook.__name__, [seen(value) for value in flat(values)]))
            self.counts[f"{step.place}: {step.action}"] += 1
            return DO[step.action](self, step, number, values[0])

        hook.__name__ = f"h{number}"
        return hook

    def go_back(self, step: Pass) -> None:
        """Run a backward pass; gradients that are asked for join the other tensors."""
        roots = [pick(self.wanting(), index) for index in step.roots]
        inputs = [pick(self.wanting(), -1 - index) for index in step.inputs]
        seeds = [self.seed(root, index) for root, index in zip(roots, step.roots, strict=True)]
        flags = {"retain_graph": step.retain or step.create, "create_graph": step.create}
        self.counts[f"pass {step.kind}"] += 1
        with self.watch():
            if step.kind == "grad":
                made = torch.autograd.grad(roots, inputs, seeds, allow_unused=True, **flags)
                self.pool.extend(grad for grad in made if grad is not None)
            else:
                some = {"inputs": inputs} if step.kind == "inputs" else {}
                torch.autograd.backward(roots, seeds, **flags, **some)

    def seed(self, root: Tensor, index: int) -> Tensor | None:
        """Return a gradient that the person holds, or None where PyTorch makes one."""
        if root.numel() == 1 and index % 2:
            return None
        self.held.append(torch.full_like(root, -0.75, requires_grad=False))
        return self.held[-1]

    def report(self) -> dict[str, Any]:
        """Return everything that can be seen; the handles are tried at the end."""
        tensors = [*self.leaves, *self.pool]
        seen = {"log": self.log, "tensors": [state(tensor) for tensor in tensors], "sharing": self.sharing()}
        seen["held"] = [(bits(tensor), tensor._version) for tensor in self.held]
        seen["hooks"] = hooks_left(tensors)
        for handle in self.handles:
            handle.remove()
        seen["hooks after remove"] = hooks_left(tensors)
        return seen | {"random": torch.rand(1).item(), "counts": self.counts}

    def sharing(self) -> list[list[str]]:
        """Return which tensors lie in one storage."""
        named: dict[str, Tensor | None] = {f"held {i}": tensor for i, tensor in enumerate(self.held)}
        for i, tensor in enumerate((*self.leaves, *self.pool)):
            named |= {f"value {i}": tensor, f"grad {i}": gradient(tensor)}
        return sharing(named)

    def let_go(self) -> None:
        """Break the circles that `create_graph` makes through `.grad`."""
        for tensor in (*self.leaves, *self.pool):
            tensor.grad = None


def pick(some: Sequence[Tensor], index: int) -> Tensor:
    """Return one of the tensors, counted from the newest."""
    return some[(-1 - index) % len(some)]


def flat(values: Any) -> Iterator[Any]:
    """Yield the values in nested tuples."""
    if isinstance(values, (tuple, list)):
        for value in values:
            yield from flat(value)
    else:
        yield values


def seen(value: Tensor | None) -> Any:
    """Return what a hook can see of a value."""
    if value is None:
        return None
    return bits(value), value._version, value.requires_grad, value.is_leaf, bits(gradient(value))


REGISTER: dict[str, Callable[[Tensor, Callable[..., Any]], Any]] = {
    "tensor": lambda tensor, hook: tensor.register_hook(hook),
    "post_accumulate": lambda tensor, hook: tensor.register_post_accumulate_grad_hook(hook),
    "node_pre": lambda tensor, hook: get_gradient_edge(tensor).node.register_prehook(hook),
    "node_post": lambda tensor, hook: get_gradient_edge(tensor).node.register_hook(hook),
    "multi": lambda tensor, hook: register_multi_grad_hook([tensor, tensor], hook),
}


def each(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Return the tensor, or the tuple of tensors, with a change made to each that is there."""
    if isinstance(value, (tuple, list)):
        return tuple(each(tensor, change) for tensor in value)
    return None if value is None else change(value)


def editable(tensor: Tensor) -> Tensor:
    """Return the gradient that a hook has in its hands: post-accumulate hooks get the parameter."""
    return tensor if tensor.grad is None else tensor.grad


def edit(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Change the gradient in place."""
    each(value, lambda tensor: editable(tensor).mul_(2))


def edit_data(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Change the gradient in place without a new version."""
    each(value, lambda tensor: editable(tensor).data.mul_(3))


def hold(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Keep a reference to the gradient, so that `.grad` has to be a copy."""
    each(value, machine.held.append)


def fail(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Raise."""
    raise ValueError(f"hook {number} does not like this")


def remove_itself(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Remove this very hook."""
    machine.handles[number].remove()


def remove_another(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Remove a hook, perhaps one that is still to come."""
    machine.handles[step.other % len(machine.handles)].remove()


def register_another(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Register a hook somewhere, perhaps where the pass still has to go."""
    place = REGISTERED_LATER[step.other % len(REGISTERED_LATER)]
    if (step.place, place) == ("post_accumulate", "node_post"):
        # torch gives a post-hook that comes while its node computes an empty tuple, unless there was one before.
        # An observer is one; so this is the one thing that cannot be the same.
        place = "node_pre"
    machine.register(Hook(place, step.other, "replace", 0))


def retain(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Ask for a tensor's gradient in the middle of the pass."""
    machine.register(Hook("retain", step.other, "keep", 0))


def nest(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Run another pass inside the pass, once."""
    if machine.nested:
        return
    machine.nested = True
    root = pick(machine.wanting(), step.other)
    torch.autograd.backward([root], [torch.ones_like(root)], retain_graph=True)


DO: dict[str, Callable[[Machine, Hook, int, Any], Any]] = {
    "keep": lambda machine, step, number, value: None,
    "same": lambda machine, step, number, value: value,
    "edit": edit,
    "edit data": edit_data,
    "replace": lambda machine, step, number, value: each(value, lambda tensor: tensor * -1.5),
    "hold": hold,
    "raise": fail,
    "wrong shape": lambda machine, step, number, value: each(value, lambda tensor: tensor.new_ones(3, 3)),
    "wrong type": lambda machine, step, number, value: "a word",
    "remove itself": remove_itself,
    "remove another": remove_another,
    "register another": register_another,
    "retain": retain,
    "nested": nest,
}
