"""What recording a part costs: some modules, or one pass of many; ``python -m benchmarks.chosen``."""

import statistics

import torch
from torch import nn

import hookviz as hv
from benchmarks.cases import CASES, Case
from benchmarks.timing import ratios
from benchmarks.watches import Watch, recorded

ROUNDS, PASSES = 9, 20
"""So many rounds; and so many passes in one recording of which the first is recorded."""
PARTS = {"mlp": ("4", "5"), "resnet": ("stages.2.*",), "encoder": ("layers.6.*",)}
"""Case → the modules that are chosen: about a sixth, a quarter and a twelfth of the model."""


def chosen(*only: str) -> Watch:
    """Recording some modules of a model."""

    def watch(case: Case) -> hv.Trace:
        assert isinstance(case.run, nn.Module)
        with hv.record(case.run, only=only) as trace:
            case.root().backward()
        return trace

    return watch


def left_out(case: Case) -> hv.Trace:
    """A pass that is not recorded inside ``record(every=...)``; the recording itself lasts for all of them."""
    case.root().backward()
    return hv.Trace()


def share(name: str) -> tuple[list[float], ...]:
    """Over a plain pass: recorded, and recorded in part; and a pass left out by ``every`` over a plain one."""
    case = CASES[name]()
    whole, part = ratios(case, [recorded, chosen(*PARTS[name])], ROUNDS)
    return whole, part, skipped(case)


def skipped(case: Case) -> list[float]:
    """A pass that is left out, over a plain one: the plain ones run outside of the recording."""
    found = []
    for _ in range(ROUNDS):
        plain = _seconds(case)
        with hv.record(every=PASSES * case.times * 2):
            case.root().backward()
            found.append(_seconds(case) / plain)
    return found


def _seconds(case: Case) -> float:
    from benchmarks.timing import seconds

    return min(seconds(case, left_out) for _ in range(3))


def main() -> None:
    """Print a line for each case."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, only in PARTS.items():
        cells = [f"{statistics.median(x):.3f} ({min(x):.3f} to {max(x):.3f})" for x in share(name)]
        print(f"| {name} | {', '.join(only)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
