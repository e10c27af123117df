"""On torch's operator samples, each formula gives the recorded gradient or no value."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

import hookviz as hv
from hookviz.analysis.formulas import derivatives
from hookviz.analysis.formulas.reasons import Reason
from hookviz.autograd.torch_internals import SAVED_TENSORS_SHOW_THEIR_HOOKS

from .compare import collect_warnings, seed_cpu_generator
from .test_operator_samples import list_operators

SAMPLES_PER_OPERATOR, STEP = 2, 4
"""So many samples of one of so many operators; ``test_formula_ops.py`` has a program for each formula."""
INEXACT_NODES = {"HardsigmoidBackward0"}
"""Nodes whose gradient torch computes in float64 with a float32 constant."""


def reasons_of_samples(op: Any, dtype: torch.dtype) -> Iterator[tuple[str, Reason]]:
    """Yield (node, reason) for the gradients sent in passes over an operator's first samples."""
    seed_cpu_generator(1)
    for sample in islice(op.sample_inputs_func(op, "cpu", dtype, True), SAMPLES_PER_OPERATOR):
        outputs: list[Any] = []
        with suppress(RuntimeError):
            outputs = tree_leaves(op(sample.input, *sample.args, **sample.kwargs))
        roots = [x for x in outputs if isinstance(x, torch.Tensor) and x.requires_grad]
        # Some samples make torch raise.
        with suppress(RuntimeError), hv.record() as trace:
            torch.autograd.backward(roots, [torch.randn_like(root) for root in roots])
        computed = [step for step in trace.steps if step.kind == "compute"]
        yield from ((trace._data.ops[step.node], reason) for step in computed for reason in trace.why(step.index))


def test_formulas_reproduce_the_recorded_gradients_of_operator_samples() -> None:
    verdicts: Counter[str] = Counter()
    with collect_warnings():
        for op in list_operators()[1::STEP]:
            for node, reason in reasons_of_samples(op, torch.float64):
                verdicts[reason.verdict] += 1
                if node in derivatives.load_formulas() and node not in INEXACT_NODES:
                    assert "does not give the recorded" not in reason.note, (op.name, node, reason)
    assert verdicts["explained"] >= (180 if SAVED_TENSORS_SHOW_THEIR_HOOKS else 90)
