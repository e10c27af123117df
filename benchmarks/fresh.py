"""One measurement in a process of its own: ``python -m benchmarks.fresh memory|time CASE WATCH ROUNDS``."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import torch

from benchmarks.cases import CASES, Case
from benchmarks.timing import ratios
from benchmarks.watches import WATCHES, Watch


def measured(*arguments: str, limit: float) -> Any:
    """What a new process measures.

    Raises:
        subprocess.TimeoutExpired: it took more than ``limit`` seconds.
        subprocess.CalledProcessError: it failed.
    """
    command = [sys.executable, "-m", "benchmarks.fresh", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    return json.loads(done.stdout.splitlines()[-1])


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


def main(what: str, case: str, watch: str, rounds: str = "0") -> None:
    """Measure once and print it as JSON."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    made = CASES[case]()
    print(
        json.dumps(growth(made, WATCHES[watch]) if what == "memory" else ratios(made, [WATCHES[watch]], int(rounds))[0])
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
