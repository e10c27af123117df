"""Recording does not change the gradients of torch's samples for all operators with autograd."""

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

from .compare import Watch, bits, collect_warnings, first_difference, plain, seed_cpu_generator

MIN_COMPARED = (1500, 2600, 2400, 1800, 1400, 1400)
"""The minimum number of compared samples of each slice on torch 2.6 to 2.14, which differ in their samples."""
NOT_DETERMINISTIC = {"linalg.lstsq", "linalg.lstsq grad_oriented"}
"""Two plain runs of these may differ in the last digits, because LAPACK's result depends on memory alignment."""
SEED = 1234
"""The seed of PyTorch's own tests."""
SAMPLES_WITH_HOOKS = 3
"""The number of samples of an operator that run again with user hooks."""

Hook = Callable[[torch.Tensor], torch.Tensor | None]


@cache
def operators() -> tuple[Any, ...]:
    """Return torch's own descriptions of the operators that have a gradient in float64."""
    flag = "__allow_nonbracketed_mutation_flag"
    original = getattr(torch.backends, flag)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("torch.testing._internal.common_methods_invocations")
    # The import forbids setting backend flags, which other tests may need.
    setattr(torch.backends, flag, original)
    return tuple(op for op in module.op_db if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu"))


@dataclass
class Tally:
    """The results of the samples of a slice."""

    counts: Counter[str] = field(default_factory=Counter)
    operators: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    different: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        left_out = ", ".join(sorted(self.left_out)) or "nothing"
        return f"{len(self.operators)} operators, {dict(self.counts)}; not deterministic, left out: {left_out}"


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """Use one thread, so that no sum depends on the distribution of work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("part", range(len(MIN_COMPARED)))
def test_recording_does_not_change_the_gradients_of_operator_samples(part: int) -> None:
    tally = Tally()
    with collect_warnings():
        for op in operators()[part :: len(MIN_COMPARED)]:
            compare_operator(op, tally)
    print(f"\nslice {part}: {tally}")
    assert not tally.different, f"{len(tally.different)} samples differ, first:\n" + "\n".join(tally.different[:5])
    assert tally.counts["compared"] >= MIN_COMPARED[part]
    assert len(tally.operators) >= len(operators()[part :: len(MIN_COMPARED)]) - 1
    assert tally.counts["raised"] <= 0.02 * tally.counts["compared"]


def test_slices_cover_every_operator() -> None:
    assert len(operators()) >= 530
    assert sum(MIN_COMPARED) >= 11_000


def compare_operator(op: Any, tally: Tally, watch: Watch = hv.record) -> None:
    """Compare all samples of an operator, and the first few also with hooks."""
    for number, sample in enumerate(samples_of(op)):
        compare_sample(op, sample, number, tally, None, watch)
        if number < SAMPLES_WITH_HOOKS:
            compare_sample(op, sample, number, tally, HOOKS[number % len(HOOKS)], watch)


def samples_of(op: Any) -> Iterator[Any]:
    """Yield the operator's samples, the same ones in every run."""
    # op.sample_inputs would search the whole stack for a test of PyTorch. As there, each sample starts with the same
    # seed.
    seed_cpu_generator(SEED)
    for sample in op.sample_inputs_func(op, "cpu", torch.float64, True):
        yield sample
        seed_cpu_generator(SEED)


def compare_sample(op: Any, sample: Any, number: int, tally: Tally, hook: Hook | None, watch: Watch) -> None:
    """Compare a plain and a recorded run of a sample; if they differ, a second plain run tests for determinism."""
    state = torch.get_rng_state()
    plain_result, recorded_result = (run_sample(op, sample, hook, how) for how in (plain, watch))
    deterministic = plain_result == recorded_result or plain_result == run_sample(op, sample, hook, plain)
    torch.set_rng_state(state)
    name = f"{op.name} {op.variant_test_name}".strip()
    if not deterministic or name in NOT_DETERMINISTIC:
        tally.left_out.add(name)
        tally.counts["left out"] += 1
        return
    tally.operators.add(name)
    tally.counts["hooked" if hook else "compared"] += 1
    tally.counts["raised"] += isinstance(plain_result[0], type)
    if plain_result != recorded_result:
        tally.different.append(f"{name}, sample {number}: {first_difference(plain_result, recorded_result)}")


def run_sample(op: Any, sample: Any, hook: Hook | None, watch: Watch) -> tuple[Any, ...]:
    """Return the bits of a sample's outputs and gradients, or the exception that it raised."""
    seed_cpu_generator(1)
    arguments = tree_map(as_new_leaf, (sample.input, sample.args, sample.kwargs))
    try:
        with watch():
            outputs = run_operator(op, sample, arguments, hook)
    except Exception as error:
        return type(error), str(error)
    gradients = [bits(leaf.grad) for leaf in tree_leaves(arguments) if requires_gradient(leaf)]
    return [bits(output) for output in outputs], gradients


def as_new_leaf(value: Any) -> Any:
    """Return a new leaf with the values of the given tensor, so that every run begins without gradients."""
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().requires_grad_(value.requires_grad)


def run_operator(op: Any, sample: Any, arguments: tuple[Any, ...], hook: Hook | None) -> list[torch.Tensor]:
    """Run the operator forward and backward, with a hook between it and the roots if one is given."""
    first, args, kwargs = arguments
    outputs = sample.output_process_fn_grad(op(first, *args, **kwargs))
    roots = [output for output in tree_leaves(outputs) if requires_gradient(output)]
    if hook is not None:
        roots = [with_hooks(root, hook) for root in roots]
    if roots:
        torch.autograd.backward(roots, [seed_for(root) for root in roots])
    return roots


def requires_gradient(value: Any) -> bool:
    """Return whether a value is a tensor that requires a gradient."""
    return isinstance(value, torch.Tensor) and value.requires_grad


def with_hooks(root: torch.Tensor, hook: Hook) -> torch.Tensor:
    """Put the hook on the root and on a tensor after it."""
    root.register_hook(hook)
    after = root * 1
    after.register_hook(hook)
    return after


def seed_for(root: torch.Tensor) -> torch.Tensor:
    """Return a random seed gradient for a root; ones for a sparse root."""
    if root.layout is not torch.strided:
        return torch.ones_like(root)
    return torch.randn_like(root, requires_grad=False)


def observe(grad: torch.Tensor) -> None:
    """Change nothing."""


def scale(grad: torch.Tensor) -> torch.Tensor:
    """Return a scaled gradient."""
    return grad * -1.5


def scale_in_place(grad: torch.Tensor) -> None:
    """Scale the gradient in place."""
    grad.mul_(0.75)


HOOKS: tuple[Hook, ...] = (observe, scale, scale_in_place)


def first_samples(name: str, count: int) -> tuple[Any, list[Any]]:
    """Return an operator and its first few samples."""
    op = next(op for op in operators() if op.name == name)
    return op, list(islice(samples_of(op), count))
