"""How much memory a pass takes, measured in a process of its own: ``python -m benchmarks.fresh CASE WATCH``."""

import subprocess
import sys
import warnings
from pathlib import Path

import torch

from benchmarks.cases import CASES, Case
from benchmarks.watches import WATCHES, Watch

LIMIT = 600
"""Seconds that the process may take."""


def measured(case: str, watch: str) -> int:
    """What a new process measures, in KiB.

    Raises:
        subprocess.TimeoutExpired: it took too long.
        subprocess.CalledProcessError: it failed.
    """
    command = [sys.executable, "-m", "benchmarks.fresh", case, watch]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    return int(done.stdout.splitlines()[-1])


def growth(case: Case, watch: Watch) -> int:
    """By how many KiB the pass raises the most memory that this process has ever held."""
    before = status("VmRSS")
    kept = watch(case)
    after = status("VmHWM")
    del kept
    return after - before


def status(field: str) -> int:
    """What the system says of this process, in KiB: ``VmRSS``, what it holds, or ``VmHWM``, the most it ever held."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def main(case: str, watch: str) -> None:
    """Measure once and print it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    print(growth(CASES[case](), WATCHES[watch]))


if __name__ == "__main__":
    main(*sys.argv[1:])
