"""What recording a part costs: some modules, or one pass of many; ``python -m benchmarks.chosen``."""

import time

import torch
from torch import nn

import hookviz as hv
from benchmarks.cases import CASES, Case
from benchmarks.timing import ratios, seconds
from benchmarks.watches import Watch, plain, recorded
from benchmarks.writing import spread

ROUNDS, CALLS = 9, 2_000
PARTS = {"mlp": ("4", "5"), "resnet": ("stages.2.*",), "encoder": ("layers.6.*",)}
"""Case → the modules that are chosen: about a sixth, a quarter and a twelfth of the model."""
NEVER = 1_000_000
"""Of so many passes one is recorded: the first, and none after it."""


def chosen(*only: str) -> Watch:
    """Recording some modules of a model."""

    def watch(case: Case) -> hv.Trace:
        assert isinstance(case.run, nn.Module)
        with hv.record(case.run, only=only) as trace:
            case.root().backward()
        return trace

    return watch


def skipped(case: Case) -> list[float]:
    """A pass that ``record(every=...)`` leaves out, over a plain one."""
    found = []
    for _ in range(ROUNDS):
        base = seconds(case, plain)
        with hv.record(every=NEVER):
            case.root().backward()
            found.append(seconds(case, plain) / base)
    return found


def calls() -> list[float]:
    """Microseconds that such a pass adds to each call of a module."""
    model, x = nn.Sequential(*(nn.Identity() for _ in range(CALLS))), torch.ones(1, requires_grad=True)
    found = []
    for _ in range(ROUNDS):
        base = _called(model, x)
        with hv.record(every=NEVER):
            x.sum().backward()
            found.append((_called(model, x) - base) / CALLS * 1e6)
    return found


def _called(model: nn.Module, x: torch.Tensor) -> float:
    start = time.process_time()
    model(x)
    return time.process_time() - start


def main() -> None:
    """Print a line for each case, and one for calls of modules."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, only in PARTS.items():
        case = CASES[name]()
        whole, part = ratios(case, [recorded, chosen(*only)], ROUNDS)
        print(f"| {case.name} | {', '.join(only)} | {spread(whole)} | {spread(part)} | {spread(skipped(case))} |")
    print(f"A call of a module in a pass that is left out: {spread(calls())} µs more.")


if __name__ == "__main__":
    main()
