"""Every sample that torch ships for every operator with autograd gives the same gradients when it is recorded."""

from __future__ import annotations

import importlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import hookviz as hv

from .compare import Watch, bits, draw_from, first_difference, plain, quiet

FLOORS = (2420, 2865, 3150, 2370, 1745, 1450)
"""How many samples each slice has to compare at least: together over 14,000."""
UNSTEADY = {"linalg.lstsq", "linalg.lstsq grad_oriented"}
"""Two plain runs of these differ now and then in the last digits: LAPACK's result depends on where its memory lies."""
SEED = 1234
"""As PyTorch's own tests have it."""
HOOKED = 3
"""How many samples of an operator run once more with hooks of the user in them."""

Hook = Callable[[torch.Tensor], torch.Tensor | None]


@cache
def operators() -> tuple[Any, ...]:
    """Return torch's own descriptions of the operators that have a gradient in float64."""
    flag = "__allow_nonbracketed_mutation_flag"
    allowed = getattr(torch.backends, flag)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("torch.testing._internal.common_methods_invocations")
    # The import forbids setting backend flags, which other tests may want to do.
    setattr(torch.backends, flag, allowed)
    return tuple(op for op in module.op_db if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu"))


@dataclass
class Tally:
    """What became of the samples of a slice."""

    counts: Counter[str] = field(default_factory=Counter)
    operators: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    different: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        left_out = ", ".join(sorted(self.left_out)) or "nothing"
        return f"{len(self.operators)} operators, {dict(self.counts)}; not deterministic, left out: {left_out}"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Let no sum depend on how the work was shared out among threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("part", range(len(FLOORS)))
def test_recorded_samples_have_the_same_gradients(part: int) -> None:
    tally = Tally()
    with quiet():
        for op in operators()[part :: len(FLOORS)]:
            compare_operator(op, tally)
    print(f"\nslice {part}: {tally}")
    assert not tally.different, f"{len(tally.different)} samples differ, first:\n" + "\n".join(tally.different[:5])
    assert tally.counts["compared"] >= FLOORS[part]
    assert len(tally.operators) >= len(operators()[part :: len(FLOORS)]) - 1
    assert tally.counts["raised"] <= 0.02 * tally.counts["compared"]


def test_the_slices_hold_every_operator() -> None:
    assert len(operators()) >= 535
    assert sum(FLOORS) >= 14_000


def compare_operator(op: Any, tally: Tally, watch: Watch = hv.record) -> None:
    """Compare all the samples of an operator, and the first few also with hooks."""
    for number, sample in enumerate(samples_of(op)):
        compare_sample(op, sample, number, tally, None, watch)
        if number < HOOKED:
            compare_sample(op, sample, number, tally, HOOKS[number % len(HOOKS)], watch)


def samples_of(op: Any) -> Iterator[Any]:
    """Yield the operator's samples, the same ones in every run."""
    # What goes around this in op.sample_inputs looks through the whole stack for a test of PyTorch's own. Like it, each
    # sample begins with the same numbers.
    draw_from(SEED)
    for sample in op.sample_inputs_func(op, "cpu", torch.float64, True):
        yield sample
        draw_from(SEED)


def compare_sample(op: Any, sample: Any, number: int, tally: Tally, hook: Hook | None, watch: Watch) -> None:
    """Run a sample plainly and recorded; where these differ, plainly once more, to see who does not repeat itself."""
    state = torch.get_rng_state()
    once, recorded = (attempt(op, sample, hook, how) for how in (plain, watch))
    steady = once == recorded or once == attempt(op, sample, hook, plain)
    torch.set_rng_state(state)
    name = f"{op.name} {op.variant_test_name}".strip()
    if not steady or name in UNSTEADY:
        tally.left_out.add(name)
        tally.counts["left out"] += 1
        return
    tally.operators.add(name)
    tally.counts["hooked" if hook else "compared"] += 1
    tally.counts["raised"] += isinstance(once[0], type)
    if once != recorded:
        tally.different.append(f"{name}, sample {number}: {first_difference(once, recorded)}")


def attempt(op: Any, sample: Any, hook: Hook | None, watch: Watch) -> tuple[Any, ...]:
    """Return the bits of a sample's outputs and gradients, or the exception that it raised."""
    draw_from(1)
    arguments = tree_map(fresh, (sample.input, sample.args, sample.kwargs))
    try:
        with watch():
            outputs = run(op, sample, arguments, hook)
    except Exception as error:
        return type(error), str(error)
    gradients = [bits(leaf.grad) for leaf in tree_leaves(arguments) if wants_gradient(leaf)]
    return [bits(output) for output in outputs], gradients


def fresh(value: Any) -> Any:
    """Return a leaf like the given tensor, so that every run begins without gradients."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def run(op: Any, sample: Any, arguments: tuple[Any, ...], hook: Hook | None) -> list[torch.Tensor]:
    """Run the operator forward and backward, with a hook between it and the roots if one is given."""
    first, args, kwargs = arguments
    outputs = sample.output_process_fn_grad(op(first, *args, **kwargs))
    roots = [output for output in tree_leaves(outputs) if wants_gradient(output)]
    if hook is not None:
        roots = [with_hook(root, hook) for root in roots]
    if roots:
        torch.autograd.backward(roots, [seed_for(root) for root in roots])
    return roots


def wants_gradient(value: Any) -> bool:
    """Tell whether a value is a tensor that a gradient can flow into."""
    return isinstance(value, torch.Tensor) and value.requires_grad


def with_hook(root: torch.Tensor, hook: Hook) -> torch.Tensor:
    """Put the hook on the root and on a tensor after it."""
    root.register_hook(hook)
    after = root * 1
    after.register_hook(hook)
    return after


def seed_for(root: torch.Tensor) -> torch.Tensor:
    """Return a gradient for a root that is not the same everywhere."""
    if root.layout is not torch.strided:
        return torch.ones_like(root)
    return torch.randn_like(root, requires_grad=False)


def keeping(grad: torch.Tensor) -> None:
    """Look and change nothing."""


def replacing(grad: torch.Tensor) -> torch.Tensor:
    """Hand on another gradient."""
    return grad * -1.5


def editing(grad: torch.Tensor) -> None:
    """Change the gradient where it lies."""
    grad.mul_(0.75)


HOOKS: tuple[Hook, ...] = (keeping, replacing, editing)


def first_samples(name: str, count: int) -> tuple[Any, list[Any]]:
    """Return an operator and its first few samples."""
    op = next(op for op in operators() if op.name == name)
    return op, list(islice(samples_of(op), count))
