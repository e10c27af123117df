"""Run the whole suite: node's tests of the player, then pytest. What follows on the command line goes to pytest."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
BROWSER = "tests/browser"
COURSE = [f"{BROWSER}/test_{name}.py" for name in ("lessons", "screen", "site", "slides")]
"""The tests in a browser that open every lesson, one after the other."""
PROOFS = "tests/proof"
# From here on node sees by itself that a .js file is a module.
NEEDED_NODE = (20, 19)


def main(arguments: list[str]) -> int:
    """Run both, so that a fault in one does not hide the other's, and return the first that failed."""
    node = run_node_tests()
    return (subprocess.run(pytest(*arguments), cwd=ROOT).returncode if arguments else run_all()) or node


def pytest(*arguments: str) -> list[str]:
    """The command that runs pytest."""
    return [sys.executable, "-m", "pytest", *arguments]


def run_all() -> int:
    """Run all that pyproject.toml names: the proofs, and the tests in a browser, beside all others.

    The others go first where there is not enough of the machine for all. What is beside prints when they are done.
    """
    # Torch's threads in one part would wait, and keep a core busy with it, for those in another.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ExitStack() as ending:
        rest = [BROWSER, *(f"--ignore={path}" for path in COURSE)]
        beside = [Beside(ending, files) for files in (COURSE, rest, [PROOFS])]
        others = subprocess.run(pytest(f"--ignore={BROWSER}", f"--ignore={PROOFS}"), cwd=ROOT).returncode
        return next(filter(None, [others, *(part.end() for part in beside)]), 0)


class Beside:
    """A pytest that runs beside others, and is ended with them."""

    def __init__(self, ending: ExitStack, arguments: list[str]) -> None:
        self._printed: IO[str] = ending.enter_context(tempfile.TemporaryFile("w+"))  # noqa: SIM115
        command = [*(["nice", "-n", "5"] if shutil.which("nice") else []), *pytest(*arguments)]
        self._run = subprocess.Popen(command, cwd=ROOT, stdout=self._printed, stderr=subprocess.STDOUT)
        ending.callback(self._run.kill)

    def end(self) -> int:
        """Wait for it, print what it said, and return how it ended."""
        failed = self._run.wait()
        self._printed.seek(0)
        print(self._printed.read(), flush=True)
        return failed


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
