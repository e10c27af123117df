"""Change the package in one small way at a time, and count how many changes its tests notice. Run by hand.

    python -m tests.mutation cover                        # which test runs which line; needs pytest-cov
    python -m tests.mutation draw mutants.json            # 80 changes at random places
    python -m tests.mutation judge mutants.json           # runs the tests that cover each, until one fails

A mutant is found again by its function and its code, so the same mutants can be judged after files have moved.
``judge`` leaves alone a mutant that a test killed before, if that test is still there.
"""

import argparse
import ast
import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "mutation"
COVERAGE, DURATIONS = WORK / "coverage", WORK / "durations"
TESTED = ("tests/unit", "tests/proof", "tests/inventory", "tests/tools")
DOCUMENTED = ("hookviz", "README.md")
"""Their examples run as tests, too."""
COUNT, SEED = 80, 38
SECONDS = 150
"""A mutant has survived if the tests that cover it pass, or as many of them as take this long without a mutant."""
HANGING = 5
"""A mutant with which the tests take this many times as long makes one of them hang."""
LEFT_OUT = ("hookviz/course/",)
"""Tested elsewhere than in ``TESTED``."""

SWAPS: dict[type, type] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip


class Mutant(NamedTuple):
    """A change of one expression or statement in a function."""

    function: str
    """The file below the root, and the qualified name in it: ``hookviz/trace/steps.py::Step.name``."""
    before: str
    after: str
    """Both as ``ast.unparse`` writes them."""
    number: int
    """Which of several equal places in the function, from 0."""


class Place(NamedTuple):
    """Where a mutant's code stands in a text of Python."""

    start: tuple[int, int]
    end: tuple[int, int]


def changed(node: ast.AST) -> str | None:
    """The code of a node after its mutation; None for a node that has none."""
    match node:
        case ast.Compare(ops=[op], left=left, comparators=right) if type(op) in SWAPS:
            return ast.unparse(ast.Compare(left, [SWAPS[type(op)]()], right))
        case ast.BoolOp(op=op, values=values):
            return f"({ast.unparse(ast.BoolOp(SWAPS[type(op)](), values))})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in SWAPS:
            return f"({ast.unparse(ast.BinOp(left, SWAPS[type(op)](), right))})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return f"({ast.unparse(operand)})"
        case ast.Constant(value=bool() as value):
            return repr(not value)
        case ast.Constant(value=int() as value):
            return repr(value + 1)
        case ast.Return(value=value) if value is not None and ast.unparse(value) != "None":
            return "return None"
        case ast.Expr(value=ast.Call()):
            return "pass"
    return None


def places(source: str, path: str) -> Iterator[tuple[Mutant, Place]]:
    """All mutants of a file, each with its place."""
    seen: dict[tuple[str, str, str], int] = defaultdict(int)

    def visit(node: ast.AST, names: tuple[str, ...], inside: bool) -> Iterator[tuple[Mutant, Place]]:
        after = changed(node) if inside else None
        if after is not None:
            key = (f"{path}::{'.'.join(names)}", ast.unparse(node), after)
            yield Mutant(*key, seen[key]), place_of(node)
            seen[key] += 1
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                below = (*names, child.name)
                for part in child.body:
                    yield from visit(part, below, isinstance(child, ast.FunctionDef))
            elif not isinstance(child, ast.arguments | ast.JoinedStr):
                yield from visit(child, names, inside)

    yield from visit(ast.parse(source), (), inside=False)


def place_of(node: Any) -> Place:
    """Where a node stands."""
    return Place((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))


def apply(source: str, place: Place, after: str) -> str:
    """The text with the code at a place replaced."""
    lines = source.encode().splitlines(keepends=True)
    (first, left), (last, right) = place
    head, tail = b"".join(lines[: first - 1]) + lines[first - 1][:left], lines[last - 1][right:]
    return (head + after.encode() + tail + b"".join(lines[last:])).decode()


def package_files() -> list[str]:
    """The files of the package below the root, without those that other tests cover."""
    files = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "hookviz").rglob("*.py"))
    return [file for file in files if not file.startswith(LEFT_OUT)]


def find(mutant: Mutant) -> tuple[str, Place] | None:
    """The file and the place of a mutant, in another file than before if its function moved; None if it is gone."""
    home, name = mutant.function.split("::")
    for file in sorted(package_files(), key=lambda file: file != home):
        for other, place in places((ROOT / file).read_text(encoding="utf-8"), file):
            if (other.function.split("::")[1], *other[1:]) == (name, *mutant[1:]):
                return file, place
    return None


def cover(workers: int) -> None:
    """Run each file of tests once, and keep which test runs which line, and how long each takes."""
    shutil.rmtree(WORK, ignore_errors=True)
    for folder in (COVERAGE, DURATIONS):
        folder.mkdir(parents=True)
    settings = WORK / "coveragerc"
    settings.write_text("[run]\nsource = hookviz\ncore = ctrace\n", encoding="utf-8")
    files = [path for folder in TESTED for path in sorted((ROOT / folder).rglob("test_*.py"))]
    files += [ROOT / name for name in DOCUMENTED]
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(partial(cover_file, settings=settings), files))


def cover_file(file: Path, settings: Path) -> None:
    """Run one file of tests, or the examples of a file or folder."""
    name = file.relative_to(ROOT).as_posix()
    data = COVERAGE / name.replace("/", "-")
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--cov", f"--cov-config={settings}"]
    options += ["--cov-context=test", "--cov-report=", f"--junit-xml={DURATIONS / data.name}.xml"]
    command = [sys.executable, "-m", "pytest", *options, "-o", "junit_family=xunit1", name]
    done = subprocess.run(
        command, cwd=ROOT, env={**environment(ROOT), "COVERAGE_FILE": str(data)}, capture_output=True, text=True
    )
    print(name, (done.stdout.splitlines() or ["?"])[-1], flush=True)


def environment(root: Path) -> dict[str, str]:
    """The variables with which tests import the package of ``root``."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
    }


def tests_of(file: str, place: Place) -> list[str]:
    """The tests that run a line of a place, those of quick files first."""
    lines = range(place.start[0], place.end[0] + 1)
    query = "select context.context, line_bits.numbits from line_bits join context on context.id = context_id"
    query += " join file on file.id = file_id where file.path like ?"
    found = set()
    for path in COVERAGE.iterdir():
        with sqlite3.connect(path) as data:
            for context, bits in data.execute(query, (f"%/{file}",)):
                if "|" in context and any(line // 8 < len(bits) and bits[line // 8] & 1 << line % 8 for line in lines):
                    found.add(context.rpartition("|")[0])
    seconds = passed_tests()
    by_file: dict[str, list[float]] = defaultdict(list)
    for test in found & seconds.keys():
        by_file[test.partition("::")[0]].append(seconds[test])
    cost = {name: sum(values) / len(values) for name, values in by_file.items()}
    return sorted(found & seconds.keys(), key=lambda test: (cost[test.partition("::")[0]], test))


def affordable(tests: list[str]) -> list[str]:
    """As many of the tests as take ``SECONDS``, from the first on."""
    seconds = passed_tests()
    ends = itertools.accumulate(seconds[test] for test in tests)
    return [test for test, end in zip(tests, ends, strict=True) if end <= SECONDS] or tests[:1]


@cache
def passed_tests() -> dict[str, float]:
    """Each test that passed without a mutant, with its seconds."""
    found = {}
    cases = (case for path in DURATIONS.iterdir() for case in ElementTree.parse(path).iter("testcase"))
    for case in cases:
        if not len(case):
            file, name = case.get("file", ""), case.get("name", "")
            parts = case.get("classname", "").split(".")[len(file.removesuffix(".py").split("/")) :]
            found["::".join([file, *parts, name])] = float(case.get("time", 0))
    return found


def draw(target: Path, count: int, seed: int) -> None:
    """Write ``count`` mutants at random places of the package."""
    everywhere = [m for file in package_files() for m, _ in places((ROOT / file).read_text(encoding="utf-8"), file)]
    chosen = random.Random(seed).sample(everywhere, count)
    write(target, [{**mutant._asdict(), "killed_by": None} for mutant in sorted(chosen)])


def write(target: Path, rows: list[dict[str, Any]]) -> None:
    """Write mutants as JSON."""
    target.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def judge(target: Path, workers: int) -> None:
    """Run the tests of each mutant that is not known to be killed, and write who killed it."""
    rows = json.loads(target.read_text(encoding="utf-8"))
    folders: SimpleQueue[Path] = SimpleQueue()
    for number in range(workers):
        folders.put(copy_of_tree(WORK / f"tree{number}"))
    left = passed_tests()

    def judge_one(row: dict[str, Any]) -> None:
        if row["killed_by"] in left or (row["killed_by"] or "").startswith(HANGS):
            return
        mutant = Mutant(*(row[name] for name in Mutant._fields))
        folder = folders.get()
        try:
            row["killed_by"] = killer(mutant, folder)
        finally:
            folders.put(folder)
        print(f"{row['killed_by'] or 'SURVIVED'}: {mutant.function}: {mutant.before} → {mutant.after}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(judge_one, rows))
    write(target, rows)
    counts = [sum(test(row["killed_by"]) for row in rows) for test in (is_gone, bool)]
    print(f"{counts[1] - counts[0]} killed of {len(rows) - counts[0]}; the code of {counts[0]} is gone")


GONE, HANGS = "gone", "no end after"


def is_gone(killed_by: str | None) -> bool:
    """Whether this verdict says that the code of the mutant was taken away."""
    return killed_by == GONE


def copy_of_tree(folder: Path) -> Path:
    """Copy the tracked files into a folder that a mutant may change."""
    shutil.rmtree(folder, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def killer(mutant: Mutant, folder: Path) -> str | None:
    """The test that fails with this mutant; None if all pass that run its lines."""
    found = find(mutant)
    if found is None:
        return GONE
    file, place = found
    tests = affordable(tests_of(file, place))
    if not tests:
        return None
    source = (ROOT / file).read_text(encoding="utf-8")
    (folder / file).write_text(apply(source, place, mutant.after), encoding="utf-8")
    try:
        return first_failure(tests, folder)
    finally:
        shutil.copy2(ROOT / file, folder / file)


def first_failure(tests: list[str], folder: Path) -> str | None:
    """The first of these tests that fails in this tree, or one whose module cannot even be imported."""
    names = folder / "tests.txt"
    names.write_text("\n".join(tests), encoding="utf-8")
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no", "-rfE"]
    command = [sys.executable, "-m", "pytest", *options, f"@{names}"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=HANGING * SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return f"{HANGS} {HANGING * SECONDS} s"
    if process.returncode == 0:
        return None
    failed = [line.split(" ")[1] for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else tests[0]


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    covering, drawing, judging = (commands.add_parser(name) for name in ("cover", "draw", "judge"))
    for command in (drawing, judging):
        command.add_argument("file", type=Path)
    drawing.add_argument("--count", type=int, default=COUNT)
    drawing.add_argument("--seed", type=int, default=SEED)
    for command in (covering, judging):
        command.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    match given.command:
        case "cover":
            cover(given.workers)
        case "draw":
            draw(given.file, given.count, given.seed)
        case "judge":
            judge(given.file, given.workers)


if __name__ == "__main__":
    main()
