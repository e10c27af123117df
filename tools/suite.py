"""Run the whole test suite: the tests of the JavaScript, then pytest with the arguments of the command line."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS_PER_CORE = 2
"""More than one: tests in a browser, and tests that start a process, wait most of their time."""

JAVASCRIPT = [sys.executable, "tools/javascript.py", "test"]


def main(arguments: list[str]) -> int:
    """Run both, so that a failure of one does not hide the other's; return a status that is not 0 if one fails."""
    javascript = subprocess.run(JAVASCRIPT, cwd=ROOT).returncode
    return subprocess.run(pytest_command(*(arguments or whole_suite_arguments())), cwd=ROOT).returncode or javascript


def pytest_command(*arguments: str) -> list[str]:
    """The command that runs pytest with these arguments."""
    return [sys.executable, "-m", "pytest", *arguments]


def whole_suite_arguments() -> list[str]:
    """The arguments with which pytest runs all tests in pyproject.toml, several files at a time."""
    # With more threads, torch in one worker would keep a core busy while it waits for those in another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    workers = WORKERS_PER_CORE * max(2, os.cpu_count() or 1)
    # In the order of pyproject.toml, the tests in the browser come first, which take longest.
    distribution = ["--dist", "loadfile", "--no-loadscope-reorder"]
    return ["-q", "--numprocesses", str(workers), "--maxprocesses", "8", *distribution]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
