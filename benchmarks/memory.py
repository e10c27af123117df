"""Measure the memory of a pass in a process of its own: ``python -m benchmarks.memory CASE OBSERVATION``."""

import subprocess
import sys
import warnings
from pathlib import Path

import torch

from benchmarks.cases import CASES, Case
from benchmarks.observation import OBSERVATIONS, Observation

TIMEOUT = 600
"""Seconds after which the process is stopped."""


def measure_in_process(case: str, observation: str) -> int:
    """Measure the growth of the peak of memory in a new process, in KiB.

    Raises:
        subprocess.TimeoutExpired: the process took too long.
        subprocess.CalledProcessError: the process failed.
    """
    command = [sys.executable, "-m", "benchmarks.memory", case, observation]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    return int(done.stdout.splitlines()[-1])


def peak_growth(case: Case, observation: Observation) -> int:
    """Measure by how many KiB the pass raises the peak of this process over what it holds before."""
    before = process_memory("VmRSS")
    result = observation(case)
    after = process_memory("VmHWM")
    del result
    return after - before


def process_memory(field: str) -> int:
    """The memory of this process in KiB: ``VmRSS``, its present memory, or ``VmHWM``, its peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def main(case: str, observation: str) -> None:
    """Measure once and print the result."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    print(peak_growth(CASES[case](), OBSERVATIONS[observation]))


if __name__ == "__main__":
    main(*sys.argv[1:])
