"""Measure what ``record(histograms=True)`` costs beside a recording without: ``python -m benchmarks.histograms``."""

import sys

import torch
from torch import nn

import hookviz as hv
from benchmarks.cases import CASES, Case
from benchmarks.observation import record_pass
from benchmarks.tables import format_spread, table_row
from benchmarks.timing import seconds_per_pass

ROUNDS = 9


def _small() -> nn.Module:
    return nn.Sequential(*(module for _ in range(4) for module in (nn.Linear(64, 64), nn.Tanh())))


HISTOGRAM_CASES = {**CASES, "small": lambda: Case("MLP, 4 × 64, batch 128", _small(), torch.randn(128, 64), 20)}


def record_histograms(case: Case) -> hv.Trace:
    """Record forward and backward, with histograms."""
    with hv.record(histograms=True) as trace:
        case.root().backward()
    return trace


def histogram_ratios(case: Case) -> list[float]:
    """Ratios of the time with histograms to that without, round by round, after one round to warm up."""
    found = []
    for _ in range(ROUNDS + 1):
        without = seconds_per_pass(case, record_pass)
        found.append(seconds_per_pass(case, record_histograms) / without)
    return found[1:]


def main() -> None:
    """Print a row for each case: all, or those that are named."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name in sys.argv[1:] or HISTOGRAM_CASES:
        case = HISTOGRAM_CASES[name]()
        trace = record_histograms(case)
        print(table_row(case.name, str(len(trace._data.histograms)), format_spread(histogram_ratios(case))))


if __name__ == "__main__":
    main()
