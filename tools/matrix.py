"""Try hookviz with each release of PyTorch that it supports: ``make matrix``, or ``python -m tools.matrix 2.6 newest``.

For each release an environment is made from nothing, and removed afterwards. In it

1. the wheel is installed, which must change neither torch nor ipywidgets;
2. the ten lines of the README and lesson 01 run with the installed wheel, outside of the checkout;
3. ``python -m hookviz check`` says what this torch lacks, and what a user loses;
4. the unit tests and the proofs run.

The table of all releases that were tried so far is printed, and is in build/matrix/table.md with what was left out.
"""

import argparse
import doctest
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.release_check import ten_lines
from tools.torch_versions import FOLDER, RELEASES, Release, clean_environ, find_release, install, make_environment

ROOT = Path(__file__).resolve().parent.parent
LESSON = ROOT / "notebooks" / "solutions" / "01_the_graph.ipynb"
SUITES = ("unit", "proof")
VERSIONS_CODE = """
import importlib.metadata, json, platform
names = ("torch", "ipywidgets")
print(json.dumps({"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in names}))
"""


@dataclass
class SuiteResult:
    """How the tests in one folder went."""

    passed: int = 0
    failed: list[str] = field(default_factory=list)
    """The names of the tests that failed."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Why tests were left out, with their number."""


@dataclass
class ReleaseResult:
    """What was seen with one release of PyTorch."""

    release: str
    versions: dict[str, str]
    unchanged: bool
    """Whether torch and ipywidgets have the same versions after the wheel was installed."""
    ten_lines: bool
    lesson: bool
    missing: list[str]
    """The sentences of ``python -m hookviz check`` about what this torch lacks."""
    suites: dict[str, SuiteResult]
    minutes: float

    def is_good(self) -> bool:
        """Whether everything went well; what this torch lacks is no fault."""
        return self.unchanged and self.ten_lines and self.lesson and not any(s.failed for s in self.suites.values())

    def row(self) -> list[str]:
        """The cells of its row in the table."""
        words = {True: "yes", False: "**no**"}
        suites = [
            f"{result.passed:,} passed, {len(result.failed)} failed, {sum(result.left_out.values())} left out"
            for result in self.suites.values()
        ]
        done = [words[fact] for fact in (self.unchanged, self.ten_lines, self.lesson)]
        return [*self.versions.values(), *done, *suites, str(len(self.missing)), f"{self.minutes:.0f}"]


HEADINGS = (
    "Python", "torch", "ipywidgets", "the wheel changes neither", "ten lines run", "lesson 01 runs",
    "unit tests", "proofs", "points in which it differs", "minutes",
)  # fmt: skip


def main(arguments: list[str]) -> int:
    """Try the releases, print the table, and return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("releases", nargs="*", default=[release.torch for release in RELEASES])
    parser.add_argument("--keep", action="store_true", help="use an environment that is there, and keep it")
    parser.add_argument("--workers", default="2", help="processes that run tests side by side")
    options = parser.parse_args(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel()
    results = []
    for release in map(find_release, options.releases):
        with make_environment(release, options.keep) as python:
            results.append(examine(release, python, wheel, options.workers))
        write_result(results[-1])
        print(f"torch {release.torch}: {'good' if results[-1].is_good() else 'not good'}", flush=True)
    table = format_table(read_results())
    (FOLDER / "table.md").write_text(table, encoding="utf-8")
    print(table)
    return 0 if all(result.is_good() for result in results) else 1


def build_wheel() -> Path:
    """Build the wheel of the checkout, and return its path."""
    target = FOLDER / "wheel"
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target), str(ROOT)]
    subprocess.run(command, check=True)
    return next(target.glob("*.whl")).absolute()


def examine(release: Release, python: Path, wheel: Path, workers: str) -> ReleaseResult:
    """Install the wheel beside this release of torch, and try everything."""
    began = time.monotonic()
    before = read_versions(python)
    install(python, f"{wheel}[unit,lessons]")
    after = read_versions(python)
    with tempfile.TemporaryDirectory() as elsewhere:
        ten_lines = run_ten_lines(python, Path(elsewhere))
        lesson = run_lesson(python, Path(elsewhere))
        missing = read_missing(python, Path(elsewhere))
    suites = {suite: run_suite(release, python, suite, workers) for suite in SUITES}
    minutes = (time.monotonic() - began) / 60
    return ReleaseResult(release.torch, after, before == after, ten_lines, lesson, missing, suites, minutes)


def run(python: Path, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python of another environment in a folder, and return what it printed."""
    command = [str(python), *arguments]
    return subprocess.run(command, cwd=folder, env=clean_environ(), capture_output=True, text=True)


def read_versions(python: Path) -> dict[str, str]:
    """Ask an environment for the versions of Python, torch and ipywidgets."""
    versions: dict[str, str] = json.loads(run(python, "-c", VERSIONS_CODE, folder=ROOT).stdout)
    return versions


def run_ten_lines(python: Path, folder: Path) -> bool:
    """Whether the first example of the README runs and prints what stands there."""
    example = ten_lines((ROOT / "README.md").read_text(encoding="utf-8"))
    examples = doctest.DocTestParser().get_examples(example)
    (folder / "ten_lines.txt").write_text(example, encoding="utf-8")
    done = run(python, "-m", "doctest", "-v", "ten_lines.txt", folder=folder)
    return report(done, f"{len(examples)} passed" in done.stdout)


def run_lesson(python: Path, folder: Path) -> bool:
    """Whether lesson 01 runs from its first cell to its last, with all exercises solved."""
    shutil.copy(LESSON, folder)
    # What `jupyter execute` does; only some environments have all of Jupyter.
    done = run(python, "-c", "from nbclient.cli import main; main()", LESSON.name, folder=folder)
    return report(done, done.returncode == 0)


def report(done: subprocess.CompletedProcess[str], is_good: bool) -> bool:
    """Print what a program said, unless all is good."""
    if not is_good:
        print(done.stdout[-3000:], done.stderr[-3000:], sep="\n", file=sys.stderr)
    return is_good


def read_missing(python: Path, folder: Path) -> list[str]:
    """Ask hookviz what this torch lacks: its sentences stand between two empty lines, after the table of uses."""
    parts = run(python, "-m", "hookviz", "check", folder=folder).stdout.strip().split("\n\n")
    return parts[2].splitlines() if len(parts) > 3 else []


def run_suite(release: Release, python: Path, suite: str, workers: str) -> SuiteResult:
    """Run the tests of one folder; their output stays in build/matrix."""
    outcome, log = (FOLDER / f"{release.torch}-{suite}{suffix}" for suffix in (".xml", ".log"))
    outcome.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--numprocesses", workers, f"--junitxml={outcome}"]
    environ = clean_environ() | {"OMP_NUM_THREADS": "1"}
    with log.open("w", encoding="utf-8") as file:
        command = [str(python), "-m", "pytest", *options, f"tests/{suite}"]
        subprocess.run(command, cwd=ROOT, env=environ, stdout=file, stderr=subprocess.STDOUT)
    if not outcome.exists():
        return SuiteResult(failed=[f"pytest did not run: {log} has its words"])
    return read_outcome(outcome.read_text(encoding="utf-8"))


def read_outcome(text: str) -> SuiteResult:
    """Read what pytest wrote about its tests, in the format of JUnit.

    >>> read_outcome('<s><testcase/><testcase><skipped message="it needs X"/></testcase></s>')
    SuiteResult(passed=1, failed=[], left_out={'it needs X': 1})
    """
    left_out: Counter[str] = Counter()
    result = SuiteResult()
    for case in ElementTree.fromstring(text).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            left_out[skipped.get("message", "")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            result.failed.append(f"{case.get('classname')}.{case.get('name')}")
        else:
            result.passed += 1
    result.left_out = dict(left_out.most_common())
    return result


def write_result(result: ReleaseResult) -> None:
    """Keep what was seen with one release, so that releases can be tried on different days."""
    (FOLDER / f"{result.release}.json").write_text(json.dumps(asdict(result), indent=1), encoding="utf-8")


def read_results() -> list[ReleaseResult]:
    """Read what was seen with each release so far, the oldest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")]
    results = [
        ReleaseResult(**kept | {"suites": {name: SuiteResult(**suite) for name, suite in kept["suites"].items()}})
        for kept in found
    ]
    return sorted(results, key=lambda result: [int(part) for part in re.findall(r"\d+", result.versions["torch"])[:3]])


def format_table(results: list[ReleaseResult]) -> str:
    """Write the table, and for each release what was left out and what failed."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *(result.row() for result in results)]
    table = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*table, *(line for result in results for line in describe_gaps(result)), ""])


def describe_gaps(result: ReleaseResult) -> list[str]:
    """The lines about one release below the table: what failed, what was left out, what this torch lacks."""
    lines = [f"- failed: {name}" for suite in result.suites.values() for name in suite.failed]
    lines += [f"- {n} left out: {why}" for suite in result.suites.values() for why, n in suite.left_out.items()]
    lines += [f"- {sentence}" for sentence in result.missing]
    return ["", f"torch {result.versions['torch']}:", "", *lines] if lines else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
