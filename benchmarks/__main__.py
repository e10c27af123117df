"""Measure the cost of recording and write the table into ``benchmarks/README.md``: ``make bench``."""

import importlib.metadata
import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.cases import CASES
from benchmarks.memory import measure_in_process
from benchmarks.observation import record_norms, record_pass, run_plain, run_with_empty_hooks
from benchmarks.tables import format_spread, make_table, replace_section
from benchmarks.timing import ratios, seconds_per_pass

ROUNDS, MEMORY_ROUNDS = 9, 7
"""Rounds of passes in one process, and pairs of processes for the peak of memory."""
START = "<!-- table -->\n"
HEAD = ("pass", "plain", "floor", "recorded", "norm", "recorded ÷ floor", "memory")


def memory_ratio(name: str) -> str:
    """Ratio of the growth of the peak of memory in a recorded pass to that in a plain one."""
    pairs = [
        [measure_in_process(name, observation) for observation in ("plain", "recorded")] for _ in range(MEMORY_ROUNDS)
    ]
    return format_spread([recorded / plain for plain, recorded in pairs])


def make_row(name: str) -> list[str]:
    """Make the row of one case."""
    case = CASES[name]()
    below, above, norm = ratios(case, [run_with_empty_hooks, record_pass, record_norms], ROUNDS)
    over_floor = [recorded / floor for recorded, floor in zip(above, below, strict=True)]
    plain_time = f"{1000 * seconds_per_pass(case, run_plain):.3g} ms"
    return [
        case.name,
        plain_time,
        format_spread(below),
        format_spread(above),
        format_spread(norm),
        format_spread(over_floor),
        memory_ratio(name),
    ]


def table(names: Sequence[str]) -> str:
    """Measure the cases called ``names``, and make their table."""
    torch_version = importlib.metadata.version("torch")
    setting = f"torch {torch_version}, Python {platform.python_version()}, one thread. "
    setting += f"Rounds: {ROUNDS}; memory {MEMORY_ROUNDS}."
    return f"{make_table(HEAD, [make_row(name) for name in names])}\n\n{setting}\n"


def main(names: Sequence[str]) -> None:
    """Print the table of the cases called ``names``; without names, measure all and write it into the page, too."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    measured = table(names or list(CASES))
    print(measured)
    if not names:
        replace_section(Path(__file__).with_name("README.md"), START, measured)


if __name__ == "__main__":
    main(sys.argv[1:])
