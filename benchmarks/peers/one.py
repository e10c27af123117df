"""One measurement in this process: ``python -m benchmarks.peers.one WORK PEER STAGES``; each line printed is a finding.

What is found is printed as soon as it is there, so that a process that dies has told what came before.
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
from benchmarks.peers.hooked import sees
from benchmarks.peers.tools import PEERS, PLAIN, Peer
from benchmarks.peers.works import WORKS
from benchmarks.timing import cpu_seconds

LONG = 10.0
"""A pass that took more seconds than this the first time is not run again to measure its time."""
ENOUGH = 1.0
"""Short passes are repeated until so many seconds are spent, or as often as the case says."""
ROOM = 12 * 2**30
"""Bytes: no process may have more, lest it take the machine down."""


def timed(run: Callable[[], Any], times: int = 1) -> tuple[float, Any]:
    """CPU time of one run, and what the last one returned."""
    gc.collect()
    start, kept = cpu_seconds(), [run()]
    while len(kept) < times and cpu_seconds() - start < ENOUGH:
        kept.append(run())
    return (cpu_seconds() - start) / len(kept), kept[-1]


def settled(run: Callable[[], Any], times: int) -> tuple[float, Any]:
    """The median of three measurements, or of fewer if they take long, and what the last run returned."""
    found: list[float] = []
    while not found or (len(found) < 3 and sum(found) * times < ENOUGH):
        kept = None
        spent, kept = timed(run, times)
        found.append(spent)
    return statistics.median(found), kept


def findings(peer: Peer, case: Case, stages: list[str]) -> Iterator[dict[str, Any]]:
    """What ``peer`` does with ``case``; the first stage, to capture, cannot be left out."""
    own = peer.prepare(case)
    before = process_memory("VmRSS")
    spent, trace = timed(lambda: peer.capture(own))
    yield {"memory": process_memory("VmHWM") - before}
    if spent < LONG:
        del trace
        spent, trace = settled(lambda: peer.capture(own), case.times)
    peer.restore()
    PLAIN.capture(case)  # to warm up
    base, _ = settled(lambda: PLAIN.capture(case), case.times)
    yield {"capture": spent / base, "seconds": spent, "plain": base}
    if "picture" in stages:
        spent, shown = timed(lambda: list(peer.picture(trace)))
        yield {**({} if peer.at_once else {"picture": spent}), "size": sum(len(text.encode()) for text in shown)}


def warm_up(peer: Peer) -> None:
    """Load whatever the tool loads when it is first used."""
    trace = peer.capture(peer.prepare(Case("tiny", torch.nn.Linear(2, 2), torch.ones(1, 2), part="linear")))
    list(peer.picture(trace))


def say(found: dict[str, Any]) -> None:
    """Print a finding for whoever has started this process."""
    print(json.dumps(found), flush=True)


def main(work: str, name: str, stages: str) -> None:
    """Measure once; an exception is a finding, too."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))
    peer = PLAIN if name == "plain" else PEERS[name]
    try:
        warm_up(peer)
        if work == "hooks":
            say({"hooks": sees(peer)})
            return
        for found in findings(peer, WORKS[work](), stages.split(",")):
            say(found)
    except Exception as error:
        lines = str(error).strip().splitlines()
        say({"failed": ": ".join([type(error).__name__, *lines[:1]])})


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # letting go of a deep graph may take long, or crash
