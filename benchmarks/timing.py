"""Measure the CPU time of observed passes relative to plain ones, in alternation."""

import gc
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import Case
from benchmarks.observation import Observation, run_plain
from hookviz.picture.graphviz_client import worker_pid


def cpu_seconds() -> float:
    """CPU time of this process, of hookviz's Graphviz process, and of child processes that have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    own = sum(usage.ru_utime + usage.ru_stime for usage in used)
    worker = worker_pid()
    return own if worker is None else own + int(Path(f"/proc/{worker}/schedstat").read_text().split()[0]) / 1e9


def seconds_per_pass(case: Case, observation: Observation) -> float:
    """Measure the CPU time per pass."""
    gc.collect()
    start = time.process_time()
    results = [observation(case) for _ in range(case.times)]
    spent = time.process_time() - start
    del results
    return spent / case.times


def ratios(case: Case, observations: Sequence[Observation], rounds: int) -> list[list[float]]:
    """For each observation, the ratios of its time to a plain pass, round by round, after one round to warm up."""
    ratios_of_observations: list[list[float]] = [[] for _ in observations]
    for number in range(rounds + 1):
        base = seconds_per_pass(case, run_plain)
        for measured, observation in zip(ratios_of_observations, observations, strict=True):
            ratio = seconds_per_pass(case, observation) / base
            if number:
                measured.append(ratio)
    return ratios_of_observations
