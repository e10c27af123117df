"""Measure in this process, print findings as JSON: ``python -m benchmarks.peers.measurement WORK PEER STAGES``.

Each finding is printed at once, so that a process that crashes has printed the earlier ones.
"""

import gc
import json
import os
import resource
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmarks.cases import Case
from benchmarks.memory import process_memory
from benchmarks.peers.hook_visibility import find_visible_hooks
from benchmarks.peers.tools import PEERS, PLAIN, Peer
from benchmarks.peers.workloads import WORKS
from benchmarks.timing import cpu_seconds

SLOW_PASS = 10.0
"""Seconds: a pass whose first run took longer is not run again."""
MIN_SECONDS = 1.0
"""Seconds: short passes are repeated until this time is spent, or as often as the case says."""
MAX_BYTES = 12 * 2**30
"""The address space of a process in bytes, so that it cannot bring down the machine."""


def time_runs(run: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """Measure the CPU time per run; return it with the result of the last run."""
    gc.collect()
    start, results = cpu_seconds(), [run()]
    while len(results) < times and cpu_seconds() - start < MIN_SECONDS:
        results.append(run())
    return (cpu_seconds() - start) / len(results), results[-1]


def median_time(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Measure three times, or less often if that takes long; return the median with the result of the last run."""
    measurements: list[float] = []
    while not measurements or (len(measurements) < 3 and sum(measurements) * times < MIN_SECONDS):
        result = None  # free the memory of the last result
        spent, result = time_runs(run, times)
        measurements.append(spent)
    return statistics.median(measurements), result


def measure_stages(peer: Peer, case: Case, stages: list[str]) -> Iterator[dict[str, Any]]:
    """Measure ``peer`` on ``case`` and yield the findings; the first stage, ``capture``, always runs."""
    own_case = peer.prepare(case)
    before = process_memory("VmRSS")
    spent, trace = time_runs(lambda: peer.capture(own_case))
    yield {"memory": process_memory("VmHWM") - before}
    if spent < SLOW_PASS:
        del trace
        spent, trace = median_time(lambda: peer.capture(own_case), case.times)
    peer.restore()
    PLAIN.capture(case)  # to warm up
    base, _ = median_time(lambda: PLAIN.capture(case), case.times)
    yield {"capture": spent / base, "seconds": spent, "plain": base}
    if "picture" in stages:
        spent, texts = time_runs(lambda: list(peer.picture(trace)))
        yield {**({} if peer.at_once else {"picture": spent}), "size": sum(len(text.encode()) for text in texts)}


def warm_up(peer: Peer) -> None:
    """Use the tool once, so that it loads everything that it loads at its first use."""
    trace = peer.capture(peer.prepare(Case("tiny", torch.nn.Linear(2, 2), torch.ones(1, 2), part="linear")))
    list(peer.picture(trace))


def print_finding(finding: dict[str, Any]) -> None:
    """Print a finding for the parent process."""
    print(json.dumps(finding), flush=True)


def main(work: str, name: str, stages: str) -> None:
    """Measure once; an exception is a finding, too."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    peer = PLAIN if name == "plain" else PEERS[name]
    try:
        warm_up(peer)
        if work == "hooks":
            print_finding({"hooks": find_visible_hooks(peer)})
            return
        for finding in measure_stages(peer, WORKS[work](), stages.split(",")):
            print_finding(finding)
    except Exception as error:
        lines = str(error).strip().splitlines()
        print_finding({"failed": ": ".join([type(error).__name__, *lines[:1]])})


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # freeing a deep graph may take long, or crash
