"""Run the whole suite: the tests of the JavaScript, then pytest, which is given what follows on the command line."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS_PER_CORE = 2
"""Tests in a browser, and those that start a process of their own, wait most of their time."""

JAVASCRIPT = [sys.executable, "tools/javascript.py", "test"]


def main(arguments: list[str]) -> int:
    """Run both, so that a fault in one does not hide the other's, and return the first that failed."""
    javascript = subprocess.run(JAVASCRIPT, cwd=ROOT).returncode
    return subprocess.run(pytest(*(arguments or everything())), cwd=ROOT).returncode or javascript


def pytest(*arguments: str) -> list[str]:
    """The command that runs pytest."""
    return [sys.executable, "-m", "pytest", *arguments]


def everything() -> list[str]:
    """What makes pytest run all that pyproject.toml names, several files at once."""
    # Torch's threads in one worker would wait, and keep a core busy with it, for those in another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    workers = WORKERS_PER_CORE * max(2, os.cpu_count() or 1)
    # In the order in which they stand here the files begin with those of the browser, the longest.
    shared = ["--dist", "loadfile", "--no-loadscope-reorder"]
    return ["-q", "--numprocesses", str(workers), "--maxprocesses", "8", *shared]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
