"""Build the wheel and the sdist, and try both in empty environments, as people who install them will.

    python -m tools.release_check             # what `make dist` does
    python -m tools.release_check --quick     # leaves out the tests that are marked slow
    python -m tools.release_check --build     # builds and checks; installs nothing

It needs only Python and a package index. What it builds is in ``dist/``; its environments are in a temporary folder,
one at a time.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CONSTRAINTS = ROOT / "constraints.txt"
TOOLS = ("build>=1.2", "twine>=6.1", "readme_renderer[md]>=44")
"""What builds and checks; with ``[md]``, twine renders the README, instead of passing any text."""
LESSON = "01_the_graph.ipynb"
NEEDED_IN_WHEEL = (
    "hookviz/py.typed",
    "hookviz/static/page.js",
    "hookviz/static/player.css",
    "hookviz/static/player.js",
    "hookviz/support/messages/en.json",
    "hookviz/analysis/formulas/formulas.json",
    "hookviz/course/questions.en.json",
)
NEEDED_IN_SDIST = (
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
    "constraints.txt",
    f"notebooks/{LESSON}",
    f"notebooks/solutions/{LESSON}",
    "hookviz/player/browser/player.js",
    "package-lock.json",
    "images/player.webp",
    "tests/unit/test_record.py",
    "tools/release_check.py",
)
LEFT_BEHIND = {".git", ".venv", ".venv-peers", "__pycache__", "build", "dist", "node_modules", ".ipynb_checkpoints"}
"""Folders that work in a checkout makes, and that nobody should download."""


class Built(NamedTuple):
    """The files of a release."""

    wheel: Path
    sdist: Path


class CheckFailed(Exception):
    """A step of the check failed; the text says which, and quotes its output."""


class Environment:
    """A virtual environment that holds nothing but pip when it is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, symlinks=sys.platform != "win32", with_pip=True)

    @property
    def programs(self) -> Path:
        """The folder of the environment's programs."""
        return self.folder / ("Scripts" if sys.platform == "win32" else "bin")

    def install(self, *requirements: str) -> None:
        """Install packages in the versions of ``constraints.txt``."""
        quiet = ("--quiet", "--no-compile", "--disable-pip-version-check")
        self.run("-m", "pip", "install", *quiet, "-c", str(CONSTRAINTS), *requirements)

    def run(self, *arguments: str, folder: Path | None = None) -> str:
        """Run the environment's Python in ``folder``, and return what it printed.

        Raises:
            CheckFailed: it failed.
        """
        command = [str(self.programs / "python"), *arguments]
        folder = folder or self.folder
        done = subprocess.run(command, cwd=folder, env=self._variables(), capture_output=True, text=True)
        if done.returncode:
            raise CheckFailed(f"{' '.join(arguments)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        return done.stdout

    def _variables(self) -> dict[str, str]:
        """The variables of this process, without those that would lead to another Python's packages."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        path = os.pathsep.join([str(self.programs), os.environ.get("PATH", "")])
        return {**kept, "PATH": path, "OMP_NUM_THREADS": "1"}


class Report:
    """Times the steps of the check, and prints each as it ends."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, str]] = []

    def step(self, name: str, work: Callable[[], str]) -> None:
        """Do one step, whose result is a text."""
        start = time.monotonic()
        result = work()
        self.rows.append((name, time.monotonic() - start, result))
        print("| {} | {:.0f} s | {} |".format(*self.rows[-1]), flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Check a release of this checkout, and return the exit status."""
    parser = argparse.ArgumentParser(description="Build hookviz, and try the result in empty environments.")
    parser.add_argument("--build", action="store_true", help="build and check the files, and install nothing")
    parser.add_argument("--quick", action="store_true", help="leave out the tests that are marked slow")
    options = parser.parse_args(arguments)
    report = Report()
    try:
        with tempfile.TemporaryDirectory() as folder:
            built = build_release(Path(folder), report)
            if not options.build:
                try_release(built, Path(folder), report, quick=options.quick)
    except CheckFailed as failure:
        print(f"The release is not ready: {failure}", file=sys.stderr)
        return 1
    return 0


def build_release(folder: Path, report: Report) -> Built:
    """Build wheel and sdist into ``dist/``, and check what they say and hold."""
    tools = Environment(folder / "tools")
    tools.install(*TOOLS)
    target = ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    report.step("build", lambda: tools.run("-m", "build", "--outdir", str(target), str(ROOT)).splitlines()[-1])
    built = Built(*target.glob("*.whl"), *target.glob("*.tar.gz"))
    report.step("twine check --strict", lambda: check_metadata(tools, built))
    report.step("files", lambda: check_files(built))
    return built


def check_metadata(tools: Environment, built: Built) -> str:
    """Check the metadata and whether an index can show the README."""
    output = tools.run("-m", "twine", "check", "--strict", *map(str, built))
    return f"{output.count('PASSED')} of {len(built)} passed"


def check_files(built: Built) -> str:
    """Check that wheel and sdist hold what they must and nothing else, and return their sizes.

    Raises:
        CheckFailed: a file is missing or should not be there.
    """
    problems = wheel_problems(wheel_files(built.wheel)) + sdist_problems(sdist_files(built.sdist))
    if problems:
        raise CheckFailed("; ".join(problems))
    return ", ".join(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB" for path in built)


def wheel_files(wheel: Path) -> list[str]:
    """The files in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def sdist_files(sdist: Path) -> list[str]:
    """The files in an sdist, without the folder that holds them all."""
    with tarfile.open(sdist) as archive:
        return [name.partition("/")[2] for name in archive.getnames()]


def wheel_problems(files: Iterable[str]) -> list[str]:
    """What the wheel lacks, and what it holds apart from the package and its metadata."""
    files = list(files)
    strays = [name for name in files if not re.match(r"hookviz(-[^/]+\.dist-info)?/", name)]
    strays += [name for name in files if "/browser/" in name or LEFT_BEHIND & {*PurePosixPath(name).parts}]
    return _problems("the wheel", files, NEEDED_IN_WHEEL, strays)


def sdist_problems(files: Iterable[str]) -> list[str]:
    """What the sdist lacks, and what it holds that only a working checkout has."""
    files = list(files)
    strays = [name for name in files if LEFT_BEHIND & {*PurePosixPath(name).parts}]
    return _problems("the sdist", files, NEEDED_IN_SDIST, strays)


def _problems(archive: str, files: list[str], needed: Iterable[str], strays: Iterable[str]) -> list[str]:
    lacks = [f"{archive} lacks {name}" for name in needed if name not in files]
    return lacks + [f"{archive} should not hold {name}" for name in strays]


def try_release(built: Built, folder: Path, report: Report, *, quick: bool) -> None:
    """Install wheel and sdist, each into an empty environment, and run examples, tests and a lesson there."""
    with tarfile.open(built.sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    try_file(built.wheel, Environment(folder / "wheel"), ROOT, report, quick=quick)
    try_file(built.sdist, Environment(folder / "sdist"), unpacked, report, quick=quick)
    try_lessons(built.wheel, Environment(folder / "lab"), report)


def try_file(file: Path, environment: Environment, sources: Path, report: Report, *, quick: bool) -> None:
    """Install a wheel or an sdist, run the README's first example and the tests of ``sources``, and remove all that."""
    kind = environment.folder.name
    report.step(f"{kind}: pip install", lambda: install(environment, file))
    report.step(f"{kind}: the README's ten lines", lambda: run_ten_lines(environment))
    report.step(f"{kind}: pip install with [unit]", lambda: install(environment, file, "unit"))
    report.step(f"{kind}: tests/unit", lambda: run_unit_tests(environment, sources, quick=quick))
    shutil.rmtree(environment.folder)


def try_lessons(wheel: Path, environment: Environment, report: Report) -> None:
    """Install the wheel with what the lessons need, and run the first of them."""
    report.step("wheel: pip install with [lab]", lambda: install(environment, wheel, "lab"))
    report.step("jupyter lab --version", lambda: environment.run("-m", "jupyter", "lab", "--version").strip())
    report.step("lesson 01", lambda: run_lesson(environment))


def install(environment: Environment, file: Path, extra: str = "") -> str:
    """Install a wheel or an sdist, and return the versions that are then imported.

    Raises:
        CheckFailed: hookviz is imported from elsewhere.
    """
    environment.install(f"{file}[{extra}]" if extra else str(file))
    code = "import hookviz, torch; print(hookviz.__version__, torch.__version__, hookviz.__file__)"
    hookviz, torch, place = environment.run("-I", "-c", code).split()
    if environment.folder.resolve() not in Path(place).resolve().parents:
        raise CheckFailed(f"hookviz was imported from {place}, not from the environment")
    return f"hookviz {hookviz}, torch {torch}"


def run_ten_lines(environment: Environment) -> str:
    """Run the README's first example as a doctest, in a folder without hookviz's sources."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (environment.folder / "ten_lines.md").write_text(ten_lines(readme), encoding="utf-8")
    environment.run("-m", "doctest", "ten_lines.md")
    return "as printed"


def ten_lines(readme: str) -> str:
    """The code of the README's section "Ten lines"."""
    found = re.search(r"## Ten lines\n+```python\n(.+?)```", readme, re.DOTALL)
    if found is None:
        raise CheckFailed("the README has no section Ten lines")
    return found[1]


def run_unit_tests(environment: Environment, sources: Path, *, quick: bool) -> str:
    """Copy the unit tests away from the sources, so that they import what is installed; return pytest's summary."""
    folder = environment.folder / "tried"
    shutil.copytree(sources / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(sources / "pyproject.toml", folder)  # it holds pytest's settings
    arguments = ["-q", "-p", "no:cacheprovider", "--numprocesses", "auto", "--dist", "worksteal"]
    arguments += ["-m", "not slow"] if quick else []
    return environment.run("-m", "pytest", *arguments, "tests/unit", folder=folder).splitlines()[-1]


def run_lesson(environment: Environment) -> str:
    """Run the first lesson as Jupyter does, in a folder without hookviz's sources."""
    shutil.copy(ROOT / "notebooks" / LESSON, environment.folder)
    environment.run("-m", "jupyter", "execute", LESSON)
    return "ran"


if __name__ == "__main__":
    sys.exit(main())
