"""Recording does not change the gradients of torch's samples for all operators with autograd."""

from __future__ import annotations

import importlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

import hookviz as hv

from .compare import Watch, bits, collect_warnings, first_difference, plain, seed_cpu_generator

SAMPLES = int(os.environ.get("HOOKVIZ_SAMPLES", 3))
"""How many samples of each operator are compared; 1000 is more than any has, and compares some 11,000."""
NOT_DETERMINISTIC = {"linalg.lstsq", "linalg.lstsq grad_oriented"}
"""Two plain runs of these may differ in the last digits, because LAPACK's result depends on memory alignment."""
SEED = 1234
"""The seed of PyTorch's own tests."""

Hook = Callable[[torch.Tensor], torch.Tensor | None]


def list_operators() -> tuple[Any, ...]:
    """Return torch's own descriptions of the operators that have a gradient in float64."""
    flag = "__allow_nonbracketed_mutation_flag"
    original = getattr(torch.backends, flag)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = importlib.import_module("torch.testing._internal.common_methods_invocations")
    # The import forbids setting backend flags, which other tests may need.
    setattr(torch.backends, flag, original)
    return tuple(op for op in module.op_db if op.supports_autograd and torch.float64 in op.supported_dtypes("cpu"))


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    """Use one thread, so that no sum depends on the distribution of work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_recording_does_not_change_the_gradients_of_operator_samples() -> None:
    counts: Counter[str] = Counter()
    compared: set[str] = set()
    different: list[str] = []
    operators = list_operators()
    with collect_warnings():
        for op in operators:
            name = f"{op.name} {op.variant_test_name}".strip()
            for number, sample in enumerate(islice(samples_of(op), SAMPLES)):
                for hook in (None, *HOOKS[number : number + 1]):
                    plain_result, recorded_result = compare(op, sample, hook)
                    if plain_result is None or name in NOT_DETERMINISTIC:
                        continue
                    compared.add(name)
                    counts["hooked" if hook else "compared"] += 1
                    counts["raised"] += isinstance(plain_result[0], type)
                    if plain_result != recorded_result:
                        different.append(f"{name}, {number}: {first_difference(plain_result, recorded_result)}")
    assert not different, f"{len(different)} samples differ, first:\n" + "\n".join(different[:5])
    assert len(operators) >= 530 and len(compared) >= len(operators) - 6
    assert counts["compared"] >= 2 * len(operators) and counts["hooked"] >= 2 * len(operators)
    assert counts["raised"] <= 0.02 * counts["compared"]


def compare(op: Any, sample: Any, hook: Hook | None) -> tuple[Any, Any]:
    state = torch.get_rng_state()
    plain_result, recorded_result = (run_sample(op, sample, hook, watch) for watch in (plain, hv.record))
    is_deterministic = plain_result == recorded_result or plain_result == run_sample(op, sample, hook, plain)
    torch.set_rng_state(state)
    return plain_result if is_deterministic else None, recorded_result


def samples_of(op: Any) -> Iterator[Any]:
    """Yield the operator's samples, the same ones in every run."""
    # op.sample_inputs would search the whole stack for a test of PyTorch. As there, each sample starts with the same
    # seed.
    seed_cpu_generator(SEED)
    for sample in op.sample_inputs_func(op, "cpu", torch.float64, True):
        yield sample
        seed_cpu_generator(SEED)


def run_sample(op: Any, sample: Any, hook: Hook | None, watch: Watch) -> tuple[Any, ...]:
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
    return isinstance(value, torch.Tensor) and value.requires_grad


def with_hooks(root: torch.Tensor, hook: Hook) -> torch.Tensor:
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
    return grad * -1.5


def scale_in_place(grad: torch.Tensor) -> None:
    grad.mul_(0.75)


HOOKS: tuple[Hook, ...] = (observe, scale, scale_in_place)
"""The first samples of each operator run again, each with one of these."""
