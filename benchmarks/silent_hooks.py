"""Measure what it costs to note what did not happen: ``python -m benchmarks.silent_hooks``."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from statistics import median
from unittest.mock import patch

import torch
from torch import nn

import hookviz as hv
from benchmarks.cases import CASES, Case
from benchmarks.tables import format_spread, table_row
from benchmarks.timing import seconds_per_pass
from hookviz.recorder.followers.hook_ledger import HookFirings, HookLedger
from hookviz.recorder.followers.parameter_ledger import ParameterLedger
from hookviz.recorder.followers.training_tracker import TrainingTracker
from hookviz.recorder.followers.unfired_hooks import UnfiredHooks

ROUNDS = 15
MEASURED = ("scalars", "mlp", "resnet", "encoder")
NOTES = (
    (HookLedger, "pass_opened"),
    (HookLedger, "pass_begins"),
    (HookFirings, "unfollowed_call"),
    (UnfiredHooks, "close"),
    (ParameterLedger, "call_written"),
    (ParameterLedger, "pass_begins"),
    (ParameterLedger, "close"),
    (TrainingTracker, "add_update"),
)
"""The functions that note what did not happen."""


def without_notes() -> AbstractContextManager[object]:
    """Switch these functions off."""
    stack = ExitStack()
    for owner, name in NOTES:
        stack.enter_context(patch.object(owner, name, lambda *args, **kwargs: None))
    return stack


def record(case: Case, *, cuts: bool = False) -> hv.Trace:
    """Record a training step."""
    model = case.run if isinstance(case.run, nn.Module) else None
    optimizer = None if model is None else torch.optim.SGD(model.parameters(), lr=1e-4)
    with hv.record(*(() if model is None else (model,)), cuts=cuts) as trace:
        case.root().backward()
        if optimizer is not None:
            optimizer.step()
    return trace


def added(
    case: Case, way: Callable[[Case], hv.Trace], base: Callable[[], AbstractContextManager[object]]
) -> list[float]:
    """Return, round by round, the time of recording in a ``way`` over that of recording plainly within ``base``."""
    found = []
    for number in range(ROUNDS + 1):
        with base():
            plain = seconds_per_pass(case, record)
        ratio = seconds_per_pass(case, way) / plain
        if number:  # the first round warms up
            found.append(ratio)
    return found


def main() -> None:
    """Print a row for each case."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.ones(1, requires_grad=True).register_hook(print)  # without any hook, there is nothing to look for
    for name in MEASURED:
        case = CASES[name]()
        base = median(seconds_per_pass(case, record) for _ in range(3))
        notes = added(case, record, without_notes)
        cuts = added(case, lambda case: record(case, cuts=True), nullcontext)
        print(table_row(case.name, f"{base * 1e3:.3g} ms", format_spread(notes), format_spread(cuts)))


if __name__ == "__main__":
    main()
