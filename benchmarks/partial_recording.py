"""Measure the cost of recording some modules or one pass of many: ``python -m benchmarks.partial_recording``."""

import time

import torch
from torch import nn

import hookviz as hv
from benchmarks.cases import CASES, Case
from benchmarks.observation import Observation, record_pass, run_plain
from benchmarks.tables import format_spread, table_row
from benchmarks.timing import ratios, seconds_per_pass

ROUNDS, MODULES = 9, 2_000
PARTS = {"mlp": ("4", "5"), "resnet": ("layer3",), "encoder": ("layers.6",)}
"""Case → the recorded modules: about a sixth, a quarter and a twelfth of the model."""
MANY_PASSES = 1_000_000
"""With ``record(every=MANY_PASSES)``, only the first pass is recorded."""


def record_part(*paths: str) -> Observation:
    """Make an observation that records some modules of a model."""

    def observe(case: Case) -> hv.Trace:
        assert isinstance(case.run, nn.Module)
        with hv.record(*map(case.run.get_submodule, paths)) as trace:
            case.root().backward()
        return trace

    return observe


def skipped_pass_ratios(case: Case) -> list[float]:
    """Ratios of the time of a pass that ``record(every=...)`` skips to that of a plain one."""
    ratios_found = []
    for _ in range(ROUNDS):
        base = seconds_per_pass(case, run_plain)
        with hv.record(every=MANY_PASSES):
            case.root().backward()
            ratios_found.append(seconds_per_pass(case, run_plain) / base)
    return ratios_found


def call_overheads() -> list[float]:
    """Microseconds that a skipped pass adds to each call of a module."""
    model, x = nn.Sequential(*(nn.Identity() for _ in range(MODULES))), torch.ones(1, requires_grad=True)
    overheads = []
    for _ in range(ROUNDS):
        base = _time_call(model, x)
        with hv.record(every=MANY_PASSES):
            x.sum().backward()
            overheads.append((_time_call(model, x) - base) / MODULES * 1e6)
    return overheads


def _time_call(model: nn.Module, x: torch.Tensor) -> float:
    start = time.process_time()
    model(x)
    return time.process_time() - start


def main() -> None:
    """Print a row for each case, and a line about calls of modules."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, paths in PARTS.items():
        case = CASES[name]()
        whole, part = ratios(case, [record_pass, record_part(*paths)], ROUNDS)
        columns = [format_spread(times) for times in (whole, part, skipped_pass_ratios(case))]
        print(table_row(case.name, ", ".join(paths), *columns))
    print(f"A call of a module in a pass that is left out: {format_spread(call_overheads())} µs more.")


if __name__ == "__main__":
    main()
