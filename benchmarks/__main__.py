"""Measure what recording costs and write the table into ``benchmarks/README.md``: ``make bench``."""

import gc
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

import hookviz as hv

ROUNDS = 9
START, END = "<!-- table -->\n", "<!-- end -->"


def scalars() -> torch.Tensor:
    """The a, b, c, d, e of the lessons."""
    a, b, d = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0, 4.0))
    return a * b * d


def perceptron() -> torch.Tensor:
    """Six linear layers of 512 over a batch of 256."""
    x = torch.randn(256, 512)
    for layer in LAYERS:
        x = torch.relu(layer(x))
    return x.sum()


def chain() -> torch.Tensor:
    """A chain of 10,000 multiplications of a scalar."""
    x = torch.tensor(1.0, requires_grad=True)
    for _ in range(10_000):
        x = x * 1.0001
    return x


LAYERS = [torch.nn.Linear(512, 512) for _ in range(6)]
CASES: dict[str, tuple[Callable[[], torch.Tensor], int]] = {
    "six scalars": (scalars, 50),
    "MLP, 6 × 512, batch 256": (perceptron, 1),
    "chain of 10,000 ops": (chain, 1),
}


def seconds(make: Callable[[], torch.Tensor], times: int, *, recorded: bool) -> float:
    """CPU time of forward and backward, ``times`` over."""
    gc.collect()
    start = time.process_time()
    for _ in range(times):
        root = make()
        if recorded:
            with hv.record():
                root.backward()
        else:
            root.backward()
    return time.process_time() - start


def ratios(make: Callable[[], torch.Tensor], times: int) -> list[float]:
    """Recorded over plain, pair by pair, after one pair to warm up."""
    pairs = [(seconds(make, times, recorded=False), seconds(make, times, recorded=True)) for _ in range(ROUNDS + 1)]
    return sorted(recorded / plain for plain, recorded in pairs[1:])


def row(name: str) -> str:
    """One line of the table."""
    found = ratios(*CASES[name])
    return f"| {name} | {statistics.median(found):.2f} | {found[0]:.2f} to {found[-1]:.2f} |"


def main() -> None:
    """Measure every case and write the table."""
    torch.set_num_threads(1)
    lines = ["| pass | recorded ÷ plain | spread |", "|---|---|---|", *map(row, CASES)]
    where = f"torch {torch.__version__}, Python {platform.python_version()}, one thread, {ROUNDS} pairs each."
    table = "\n".join([*lines, "", where, ""])
    page = Path(__file__).with_name("README.md")
    before, _, rest = page.read_text(encoding="utf-8").partition(START)
    page.write_text(f"{before}{START}{table}{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
