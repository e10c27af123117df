"""CPU time of watched passes over plain ones: pairs of which one runs right after the other, in turn."""

import gc
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.cases import Case
from benchmarks.watches import Watch, plain
from hookviz.picture.graphviz_client import worker_pid


def cpu_seconds() -> float:
    """CPU time of this process, of hookviz's Graphviz, and of the programs that were started here and have ended."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ended = sum(one.ru_utime + one.ru_stime for one in used)
    worker = worker_pid()
    return ended if worker is None else ended + int(Path(f"/proc/{worker}/schedstat").read_text().split()[0]) / 1e9


def seconds(case: Case, watch: Watch) -> float:
    """CPU time of one measurement, per pass."""
    gc.collect()
    start = time.process_time()
    kept = [watch(case) for _ in range(case.times)]
    spent = time.process_time() - start
    del kept
    return spent / case.times


def ratios(case: Case, watches: Sequence[Watch], rounds: int) -> list[list[float]]:
    """For each watch its time over that of a plain pass, round by round, after one round to warm up."""
    found: list[list[float]] = [[] for _ in watches]
    for number in range(rounds + 1):
        base = seconds(case, plain)
        for spent, watch in zip(found, watches, strict=True):
            ratio = seconds(case, watch) / base
            if number:
                spent.append(ratio)
    return found
