"""An interpreter for the programs, which reports everything that a user could observe."""

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
    collect_warnings,
    describe_error,
    describe_warnings,
    garbage_collection_off,
    gradient,
    plain,
    remaining_hooks,
    seed_cpu_generator,
    shared_storage_groups,
    storage_address,
    tensor_state,
)
from .programs import IN_PLACE, OPS, Drop, Hook, Leaf, Op, Pass, Program, Remove

SHAPES = ((), (2,), (2, 2))
REGISTERED_LATER = ("tensor", "post_accumulate", "node_pre", "node_post", "multi")


def run_program(program: Program, watch: Watch = plain, whole: bool = False) -> dict[str, Any]:
    """Run a program, with the watch around all of it or around each pass, and report what is visible."""
    machine = Machine(plain if whole else watch)
    seed_cpu_generator(0)
    with collect_warnings() as caught, garbage_collection_off():
        with watch() if whole else nullcontext():
            machine.run(program)
        report = machine.report() | {"warnings": describe_warnings(caught)}
    machine.break_cycles()
    return report


class Machine:
    """Runs a program and keeps references to everything that a user could keep."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.pool: list[Tensor] = []
        self.leaves: list[Tensor] = []
        self.kept_gradients: list[Tensor] = []
        self.retaining: list[Tensor] = []
        self.handles: list[Any] = []
        self.log: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.nested = False

    def run(self, program: Program) -> None:
        """Execute every step; an error is logged, and the program continues."""
        for leaf in program.leaves:
            self.add_leaf(leaf)
        for number, step in enumerate(program.steps):
            try:
                self.execute(step)
            except Exception as error:
                self.log.append((number, describe_error(error)))
                self.counts[f"{type(step).__name__} raised"] += 1

    def add_leaf(self, leaf: Leaf) -> None:
        """Create a leaf, whose numbers include negative zeros."""
        shape = torch.Size(SHAPES[leaf.shape])
        values = (torch.arange(shape.numel(), dtype=torch.float64) + leaf.start) * -0.75
        tensor = values.reshape(shape).requires_grad_(leaf.needs_grad)
        if leaf.has_grad and leaf.needs_grad:
            tensor.grad = torch.full_like(tensor, 0.5, requires_grad=False)
        self.leaves.append(tensor)
        self.pool.append(tensor)

    def execute(self, step: Op | Hook | Remove | Drop | Pass) -> None:
        """Execute one step."""
        if isinstance(step, Op):
            self.compute(step)
        elif isinstance(step, Hook):
            self.register(step)
        elif isinstance(step, Pass):
            self.run_backward(step)
        elif isinstance(step, Remove) and self.handles:
            self.handles[step.handle % len(self.handles)].remove()
        elif isinstance(step, Drop) and len(self.pool) > 1:
            self.pool.pop(-1 - step.target % len(self.pool))

    def compute(self, op: Op) -> None:
        """Execute an operation, and add its results to the pool."""
        if op.name in IN_PLACE and storage_address(pick(self.pool, op.first)) in map(storage_address, self.retaining):
            # torch 2.13 sometimes crashes when a tensor that retains its gradient is edited through a view.
            return
        results = OPS[op.name](pick(self.pool, op.first), pick(self.pool, op.second))
        self.pool.extend(results if isinstance(results, tuple) else (results,))
        self.counts[op.name] += 1

    def tensors_with_grad(self) -> list[Tensor]:
        """Return the tensors that a gradient can reach, or leaves if none is left."""
        return [tensor for tensor in self.pool if tensor.requires_grad] or self.leaves_with_grad()

    def leaves_with_grad(self) -> list[Tensor]:
        """Return the leaves that a gradient can reach, or all if there is none."""
        return [tensor for tensor in self.leaves if tensor.requires_grad] or self.leaves

    def register(self, step: Hook) -> None:
        """Register the hook of a step."""
        tensor = pick(
            self.leaves_with_grad() if step.place == "post_accumulate" else self.tensors_with_grad(), step.target
        )
        # torch 2.13 crashes on a hook on a view whose base has changed, unless grad_fn was read before.
        self.log.append(tensor.grad_fn is None)
        if step.place == "retain":
            tensor.retain_grad()
            self.retaining.append(tensor)
            return
        self.handles.append(REGISTER[step.place](tensor, self.hook(step)))

    def hook(self, step: Hook) -> Callable[..., Any]:
        """Return a function that logs its arguments and performs the action of the step."""
        number = len(self.handles)

        def hook(*values: Any) -> Any:
            self.log.append((hook.__name__, [visible(value) for value in flatten(values)]))
            self.counts[f"{step.place}: {step.action}"] += 1
            return ACTIONS[step.action](self, step, number, values[0])

        hook.__name__ = f"h{number}"
        return hook

    def run_backward(self, step: Pass) -> None:
        """Run a backward pass; gradients returned by `grad` join the pool."""
        roots = [pick(self.tensors_with_grad(), index) for index in step.roots]
        inputs = [pick(self.tensors_with_grad(), -1 - index) for index in step.inputs]
        seeds = [self.seed(root, index) for root, index in zip(roots, step.roots, strict=True)]
        flags = {"retain_graph": step.retain or step.create, "create_graph": step.create}
        self.counts[f"pass {step.kind}"] += 1
        with self.watch():
            if step.kind == "grad":
                results = torch.autograd.grad(roots, inputs, seeds, allow_unused=True, **flags)
                self.pool.extend(grad for grad in results if grad is not None)
            else:
                options = {"inputs": inputs} if step.kind == "inputs" else {}
                torch.autograd.backward(roots, seeds, **flags, **options)

    def seed(self, root: Tensor, index: int) -> Tensor | None:
        """Return a seed that the program keeps, or None to let PyTorch create it."""
        if root.numel() == 1 and index % 2:
            return None
        self.kept_gradients.append(torch.full_like(root, -0.75, requires_grad=False))
        return self.kept_gradients[-1]

    def report(self) -> dict[str, Any]:
        """Return everything visible, before and after removing the handles."""
        tensors = [*self.leaves, *self.pool]
        visible = {
            "log": self.log,
            "tensors": [tensor_state(tensor) for tensor in tensors],
            "sharing": self.shared_storage_groups(),
        }
        visible["held"] = [(bits(tensor), tensor._version) for tensor in self.kept_gradients]
        visible["hooks"] = remaining_hooks(tensors)
        for handle in self.handles:
            handle.remove()
        visible["hooks after remove"] = remaining_hooks(tensors)
        return visible | {"random": torch.rand(1).item(), "counts": self.counts}

    def shared_storage_groups(self) -> list[list[str]]:
        """Return the groups of tensors that share a storage."""
        tensors_by_name: dict[str, Tensor | None] = {
            f"held {i}": tensor for i, tensor in enumerate(self.kept_gradients)
        }
        for i, tensor in enumerate((*self.leaves, *self.pool)):
            tensors_by_name |= {f"value {i}": tensor, f"grad {i}": gradient(tensor)}
        return shared_storage_groups(tensors_by_name)

    def break_cycles(self) -> None:
        """Break the reference cycles that `create_graph` makes through `.grad`."""
        for tensor in (*self.leaves, *self.pool):
            tensor.grad = None


def pick(tensors: Sequence[Tensor], index: int) -> Tensor:
    """Return a tensor by its index from the newest."""
    return tensors[(-1 - index) % len(tensors)]


def flatten(values: Any) -> Iterator[Any]:
    """Yield the values in nested tuples."""
    if isinstance(values, (tuple, list)):
        for value in values:
            yield from flatten(value)
    else:
        yield values


def visible(value: Tensor | None) -> Any:
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


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Apply ``change`` to a tensor, or to each tensor of a tuple that is not None."""
    if isinstance(value, (tuple, list)):
        return tuple(map_tensors(tensor, change) for tensor in value)
    return None if value is None else change(value)


def gradient_of(tensor: Tensor) -> Tensor:
    """Return the gradient for a hook's argument, which is the parameter in post-accumulate hooks."""
    return tensor if tensor.grad is None else tensor.grad


def edit(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Change the gradient in place."""
    map_tensors(value, lambda tensor: gradient_of(tensor).mul_(2))


def edit_data(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Change the gradient in place without a new version."""
    map_tensors(value, lambda tensor: gradient_of(tensor).data.mul_(3))


def keep_reference(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Keep a reference to the gradient, so that `.grad` has to be a copy."""
    map_tensors(value, machine.kept_gradients.append)


def fail(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Raise an error."""
    raise ValueError(f"hook {number} does not like this")


def remove_itself(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Remove this hook."""
    machine.handles[number].remove()


def remove_another(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Remove a hook, which may not have run yet."""
    machine.handles[step.other % len(machine.handles)].remove()


def register_another(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Register a hook, possibly where the pass has not been yet."""
    place = REGISTERED_LATER[step.other % len(REGISTERED_LATER)]
    if (step.place, place) == ("post_accumulate", "node_post"):
        # torch passes an empty tuple to a post-hook that is registered while its node computes, unless the node had one
        # before. An observer is such a post-hook, so recording changes this case unavoidably.
        place = "node_pre"
    machine.register(Hook(place, step.other, "replace", 0))


def retain(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Call retain_grad on a tensor during the pass."""
    machine.register(Hook("retain", step.other, "keep", 0))


def run_nested_pass(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Run another pass inside the pass, once."""
    if machine.nested:
        return
    machine.nested = True
    root = pick(machine.tensors_with_grad(), step.other)
    torch.autograd.backward([root], [torch.ones_like(root)], retain_graph=True)


ACTIONS: dict[str, Callable[[Machine, Hook, int, Any], Any]] = {
    "keep": lambda machine, step, number, value: None,
    "same": lambda machine, step, number, value: value,
    "edit": edit,
    "edit data": edit_data,
    "replace": lambda machine, step, number, value: map_tensors(value, lambda tensor: tensor * -1.5),
    "hold": keep_reference,
    "raise": fail,
    "wrong shape": lambda machine, step, number, value: map_tensors(value, lambda tensor: tensor.new_ones(3, 3)),
    "wrong type": lambda machine, step, number, value: "a word",
    "remove itself": remove_itself,
    "remove another": remove_another,
    "register another": register_another,
    "retain": retain,
    "nested": run_nested_pass,
}
