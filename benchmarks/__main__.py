"""Measure what recording costs and write the table into ``benchmarks/README.md``: ``make bench``."""

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.cases import CASES
from benchmarks.fresh import measured
from benchmarks.timing import ratios, seconds
from benchmarks.watches import floor, normed, plain, recorded
from benchmarks.writing import grid, put, spread

ROUNDS, FRESH = 9, 7
"""Rounds of passes in one process, and pairs of processes of their own for the peak of memory."""
START = "<!-- table -->\n"
HEAD = ("pass", "plain", "floor", "recorded", "norm", "recorded ÷ floor", "memory")


def memory(name: str) -> str:
    """Growth of the peak of memory in a recorded pass over that in a plain one."""
    pairs = [[measured(name, watch) for watch in ("plain", "recorded")] for _ in range(FRESH)]
    return spread([recorded / plain for plain, recorded in pairs])


def row(name: str) -> list[str]:
    """One line of the table."""
    case = CASES[name]()
    below, above, norm = ratios(case, [floor, recorded, normed], ROUNDS)
    over = [one / other for one, other in zip(above, below, strict=True)]
    once = f"{1000 * seconds(case, plain):.3g} ms"
    return [case.name, once, spread(below), spread(above), spread(norm), spread(over), memory(name)]


def table(names: Sequence[str]) -> str:
    """Measure the cases called ``names``."""
    torch_version = importlib.metadata.version("torch")
    where = f"torch {torch_version}, Python {platform.python_version()}, one thread. Rounds: {ROUNDS}; memory {FRESH}."
    return f"{grid(HEAD, [row(name) for name in names])}\n\n{where}\n"


def main(names: Sequence[str]) -> None:
    """Print the table of the cases called ``names``; of all of them, write it into the page, too."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    found = table(names or list(CASES))
    print(found)
    if not names:
        put(Path(__file__).with_name("README.md"), START, found)


if __name__ == "__main__":
    main(sys.argv[1:])
