"""Run the whole suite: node's tests of the player, then pytest. What follows on the command line goes to pytest."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS_PER_CORE = 2
"""Tests in a browser, and those that start a process of their own, wait most of their time."""
# From here on node sees by itself that a .js file is a module.
NEEDED_NODE = (20, 19)


def main(arguments: list[str]) -> int:
    """Run both, so that a fault in one does not hide the other's, and return the first that failed."""
    node = run_node_tests()
    return subprocess.run(pytest(*(arguments or everything())), cwd=ROOT).returncode or node


def pytest(*arguments: str) -> list[str]:
    """The command that runs pytest."""
    return [sys.executable, "-m", "pytest", *arguments]


def everything() -> list[str]:
    """What makes pytest run all that pyproject.toml names, several files at once."""
    # Torch's threads in one worker would wait, and keep a core busy with it, for those in another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    workers = WORKERS_PER_CORE * max(2, os.cpu_count() or 1)
    return ["-q", "--numprocesses", str(workers), "--maxprocesses", "8", "--dist", "loadfile"]


def run_node_tests() -> int:
    """Run the tests in JavaScript, or say why they were left out; that is a failure where node is required."""
    reason = why_not_node(shutil.which("node"))
    if reason is None:
        return subprocess.run(["node", "--test", *node_tests()], cwd=ROOT).returncode
    print(f"The tests in tests/js were left out: {reason}.", flush=True)
    return int("node" in os.environ.get("HOOKVIZ_REQUIRE", "").split(","))


def node_tests() -> list[str]:
    """The files by name, since node's releases differ in what they make of a folder."""
    return [str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "js").glob("*.test.*js"))]


def why_not_node(node: str | None) -> str | None:
    """Why node's tests cannot run here, if they cannot."""
    needed = "{}.{} or newer is needed".format(*NEEDED_NODE)
    if not node_tests():
        return "there are none"
    if node is None:
        return f"node is not installed; {needed}"
    version = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    if numbers is None or tuple(map(int, numbers.groups())) < NEEDED_NODE:
        return f"node is {version or 'broken'} and {needed}"
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
