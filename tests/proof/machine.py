"""An interpreter for the programs, which reports everything that a user could observe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
from .hook_ledger import MODULE_PLACES, HookLedger, check_unfired
from .programs import IN_PLACE, OPS, Drop, Hook, Leaf, Op, Pass, Program, Remove, Silent, Step
from .silent_hooks import SILENT, Net

SHAPES = ((), (2,), (2, 2))
REGISTERED_LATER = ("tensor", "post_accumulate", "node_pre", "node_post", "multi")


def run_program(program: Program, watch: Watch = plain, whole: bool = False) -> dict[str, Any]:
    """Run a program, with the watch around all of it or around each pass, and report what is visible."""
    machine = Machine(plain if whole else watch, [Net()] if program.has_modules else [])
    seed_cpu_generator(0)
    with collect_warnings() as caught, garbage_collection_off():
        with watch(*machine.models) if whole else nullcontext() as trace:
            machine.ledger.recording_begins(trace, is_whole=True)
            named, optimizer = machine.named, machine.optimizer  # hookviz looks at variables when a recording ends
            machine.run(program)
            optimizer = machine.optimizer
            if trace is not None:
                machine.ledger.recording_ends()
        check_unfired(machine.ledger)
        report = machine.report() | {"warnings": describe_warnings(caught)}
    del named, optimizer
    machine.break_cycles()
    return report


class Machine:
    """Runs a program and keeps references to everything that a user could keep."""

    def __init__(self, watch: Watch, models: Sequence[Net] = ()) -> None:
        self.watch, self.models = watch, models
        self.pool: list[Tensor] = []
        self.leaves: list[Tensor] = []
        self.kept_gradients: list[Tensor] = []
        self.retaining: list[Tensor] = []
        self.handles: list[Any] = []
        self.log: list[Any] = []
        self.counts: Counter[str] = Counter()
        self.nested = False
        self.ledger = HookLedger()
        self.named: dict[str, Tensor] = {}
        """Tensors with hooks that the code around each recording has in a variable."""
        self.tracked: dict[str, Tensor] = {name: one for net in models for name, one in net.named_parameters()}
        """Tensors whose place in the graphs matters for the causes, beside the named ones."""
        self.optimizer: torch.optim.Optimizer | None = None

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

    def execute(self, step: Step) -> None:
        if isinstance(step, Op):
            self.compute(step)
        elif isinstance(step, Hook):
            self.register(step)
        elif isinstance(step, Silent):
            SILENT[step.kind](self, step.target)
        elif isinstance(step, Pass):
            self.run_backward(step)
        elif isinstance(step, Remove) and self.handles:
            self.remove(step.handle % len(self.handles))
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
        tensor = pick(
            self.leaves_with_grad() if step.place == "post_accumulate" else self.tensors_with_grad(), step.target
        )
        # torch 2.13 crashes on a hook on a view whose base has changed, unless grad_fn was read before.
        self.log.append(tensor.grad_fn is None)
        if step.place == "retain":
            tensor.retain_grad()
            self.retaining.append(tensor)
            return
        self.hook_tensors([tensor], "", step.place, step=step)

    def hook_tensors(
        self, tensors: Sequence[Tensor], kind: str, place: str, names: tuple[str, ...] = (), step: Hook | None = None
    ) -> None:
        """Register a hook on tensors; without a step it only looks."""
        self.log.append([tensor.grad_fn is None for tensor in tensors])
        names = names or tuple(name for name, one in self.named.items() if one is tensors[0])
        hook = self.hook(step or Hook(place, 0, "keep", 0), tensors, kind, names)
        try:
            self.handles.append(REGISTER[place](tensors, hook))
        except Exception:
            self.ledger.hooks.pop()
            raise

    def hook(
        self, step: Hook, tensors: Sequence[Tensor] = (), kind: str = "", names: tuple[str, ...] = ()
    ) -> Callable[..., Any]:
        """Return a function that logs its arguments and performs the action of the step."""
        number, entry = len(self.handles), self.ledger.add(step.place, kind, tensors, names)

        def hook(*values: Any) -> Any:
            entry.fired += 1
            values = tuple(value for value in values if not isinstance(value, torch.nn.Module))
            seen = [] if step.place == "step" else [visible(value) for value in flatten(values)]
            self.log.append((hook.__name__, seen))
            self.counts[f"{step.place}: {step.action}"] += 1
            if None in seen:
                entry.none_in.add(self.ledger.running[-1])
            return ACTIONS[step.action](self, step, number, values[0] if values else None)

        hook.__name__ = entry.name
        return hook

    def remove(self, number: int) -> None:
        self.ledger.remove(number)
        self.handles[number].remove()

    # -- what the constructions of `silent_hooks.py` need

    @property
    def net(self) -> Net:
        """The model of a program that hooks modules."""
        return self.models[0]

    def pick_with_grad(self, target: int) -> Tensor:
        """Return a tensor that a gradient can reach."""
        return pick(self.tensors_with_grad(), target)

    def name_tensor(self, tensor: Tensor, kind: str) -> str:
        """Put a tensor into a variable, and return its name."""
        name = f"{kind} {len(self.named)}"
        self.named[name] = tensor
        self.ledger.named(tensor, name)
        return name

    def hook_named(self, tensor: Tensor, kind: str, place: str) -> None:
        """Hook a tensor and put it into a variable."""
        self.hook_tensors([tensor], kind, place, (self.name_tensor(tensor, kind),))

    def hook_module(self, name: str, target: int) -> None:
        place = MODULE_PLACES[target % len(MODULE_PLACES)]
        hook = self.hook(Hook(place, 0, "keep", 0), (), f"module {name}", (name,))
        self.handles.append(REGISTER_ON_MODULE[place](getattr(self.net, name), hook))

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of the program, which has one leaf of its own."""
        if self.optimizer is None:
            self.optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.1)
        return self.optimizer

    def hook_optimizer(self, target: int, kind: str) -> None:
        optimizer = self.make_optimizer()
        register = optimizer.register_step_pre_hook if target % 2 else optimizer.register_step_post_hook
        self.handles.append(register(self.hook(Hook("step", 0, "keep", 0), (), kind, ("optimizer",))))

    def run_backward(self, step: Pass) -> None:
        roots = [pick(self.tensors_with_grad(), index) for index in step.roots]
        inputs = [pick(self.tensors_with_grad(), -1 - index) for index in step.inputs]
        seeds = [self.seed(root, index) for root, index in zip(roots, step.roots, strict=True)]
        flags = {"retain_graph": step.retain or step.create, "create_graph": step.create}
        self.counts[f"pass {step.kind}"] += 1
        named = self.named  # hookviz looks for tensors in the variables of this function
        is_partial = step.kind != "backward"
        with self.watch(*self.models) as trace, self.noted_pass(trace, roots, is_partial=is_partial):
            if step.kind == "grad":
                results = torch.autograd.grad(roots, inputs, seeds, allow_unused=True, **flags)
                self.pool.extend(grad for grad in results if grad is not None)
            else:
                options = {"inputs": inputs} if step.kind == "inputs" else {}
                torch.autograd.backward(roots, seeds, **flags, **options)
        del named

    @contextmanager
    def noted_pass(self, trace: Any, roots: Sequence[Tensor], *, is_partial: bool) -> Iterator[None]:
        """Note a pass in the ledger, and the recording around it unless it is None."""
        self.ledger.recording_begins(trace, is_whole=False)
        begun = self.ledger.pass_begins(roots, {**self.named, **self.tracked}, is_partial=is_partial)
        try:
            yield
            begun.raised = False
        finally:
            self.ledger.running.pop()
            if trace is not None:
                self.ledger.recording_ends()

    def seed(self, root: Tensor, index: int) -> Tensor | None:
        """Return a seed that the program keeps, or None to let PyTorch create it."""
        if root.numel() == 1 and index % 2:
            return None
        self.kept_gradients.append(torch.full_like(root, -0.75, requires_grad=False))
        return self.kept_gradients[-1]

    def report(self) -> dict[str, Any]:
        """Return everything visible, before and after removing the handles."""
        parameters = [one for net in self.models for one in net.parameters()]
        tensors = [*self.leaves, *self.pool, *self.named.values(), *parameters]
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
        self.counts.update(f"silent: {entry.kind}" for entry in self.ledger.hooks if entry.kind and not entry.fired)
        return visible | {"random": torch.rand(1).item(), "counts": self.counts}

    def shared_storage_groups(self) -> list[list[str]]:
        tensors_by_name: dict[str, Tensor | None] = {
            f"held {i}": tensor for i, tensor in enumerate(self.kept_gradients)
        }
        for i, tensor in enumerate((*self.leaves, *self.pool)):
            tensors_by_name |= {f"value {i}": tensor, f"grad {i}": gradient(tensor)}
        return shared_storage_groups(tensors_by_name)

    def break_cycles(self) -> None:
        """Break the reference cycles that `create_graph` makes through `.grad`."""
        for tensor in (*self.leaves, *self.pool, *self.named.values()):
            tensor.grad = None
        self.named.clear()
        self.tracked.clear()


def pick(tensors: Sequence[Tensor], index: int) -> Tensor:
    return tensors[(-1 - index) % len(tensors)]


def flatten(values: Any) -> Iterator[Any]:
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


REGISTER: dict[str, Callable[[Sequence[Tensor], Callable[..., Any]], Any]] = {
    "tensor": lambda tensors, hook: tensors[0].register_hook(hook),
    "post_accumulate": lambda tensors, hook: tensors[0].register_post_accumulate_grad_hook(hook),
    "node_pre": lambda tensors, hook: get_gradient_edge(tensors[0]).node.register_prehook(hook),
    "node_post": lambda tensors, hook: get_gradient_edge(tensors[0]).node.register_hook(hook),
    "multi": lambda tensors, hook: register_multi_grad_hook([tensors[0], tensors[-1]], hook),
    "multi any": lambda tensors, hook: register_multi_grad_hook([tensors[0], tensors[-1]], hook, mode="any"),
}
REGISTER_ON_MODULE: dict[str, Callable[[torch.nn.Module, Callable[..., Any]], Any]] = {
    "forward_pre": lambda module, hook: module.register_forward_pre_hook(hook),
    "forward": lambda module, hook: module.register_forward_hook(hook),
    "backward_pre": lambda module, hook: module.register_full_backward_pre_hook(hook),
    "backward": lambda module, hook: module.register_full_backward_hook(hook),
}


def map_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple(map_tensors(tensor, change) for tensor in value)
    return None if value is None else change(value)


def gradient_of(tensor: Tensor) -> Tensor:
    """Return the gradient for a hook's argument, which is the parameter in post-accumulate hooks."""
    return tensor if tensor.grad is None else tensor.grad


def edit(machine: Machine, step: Hook, number: int, value: Any) -> None:
    map_tensors(value, lambda tensor: gradient_of(tensor).mul_(2))


def edit_data(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Change the gradient in place without a new version."""
    map_tensors(value, lambda tensor: gradient_of(tensor).data.mul_(3))


def keep_reference(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Keep a reference to the gradient, so that `.grad` has to be a copy."""
    map_tensors(value, machine.kept_gradients.append)


def fail(machine: Machine, step: Hook, number: int, value: Any) -> None:
    raise ValueError(f"hook {number} does not like this")


def remove_itself(machine: Machine, step: Hook, number: int, value: Any) -> None:
    machine.remove(number)


def remove_another(machine: Machine, step: Hook, number: int, value: Any) -> None:
    """Remove a hook, which may not have run yet."""
    machine.remove(step.other % len(machine.handles))


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
    # In torch 2.6, a pass in a post-accumulate hook waits forever if it reaches the same leaf.
    if machine.nested or (step.place == "post_accumulate" and torch.__version__ < "2.8"):
        return
    machine.nested = True
    root = pick(machine.tensors_with_grad(), step.other)
    with machine.noted_pass(None, [root], is_partial=False):
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
