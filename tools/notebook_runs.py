"""Run notebooks, each in a fresh kernel, and keep the results until the notebook or a package changes."""

import ast
import asyncio
import fcntl
import hashlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from hookviz.support.messages.languages import VARIABLE
from tools.lesson_start import remove_start
from tools.lessons import language_of, remove_solutions
from tools.translation.message_sources import ROOT

logging.getLogger("traitlets").setLevel(logging.WARNING)  # which notebook runs is no news
CACHE = ROOT / "build" / "run"
SECONDS_PER_CELL = 600
"""The longest that a cell may take, on a busy machine too: on a quiet one, each takes a few seconds."""
QUIET = ["--IPKernelApp.log_level=ERROR"]
EMPTY_TOOLBOX = """import pathlib, tempfile
import hookviz.course.toolbox
hookviz.course.toolbox.folder = pathlib.Path(tempfile.mkdtemp())"""
"""Code that begins with no tool kept, and keeps none beside the lessons."""
MEASURE = """import pathlib, re, statistics, time, timeit
used = time.process_time()
status = pathlib.Path("/proc/self/status")  # Only Linux has it.
peak = re.search("VmHWM:(.*)kB", status.read_text()) if status.exists() else None
yardstick = timeit.repeat("for i in range(1_000_000): i * i % 7", number=1, repeat=5, timer=time.process_time)
peak and int(peak[1]) // 1024, used * 0.06 / statistics.median(yardstick)"""
"""Code that returns the kernel's peak memory and processor time.

It does not use ``getrusage``, whose peak includes that of the process that started the kernel. The time is that of a
processor that needs 0.06 s for a million turns of a loop: on a slower or busier one it is no longer.
"""


def run_all(paths: Iterable[Path]) -> dict[Path, Any]:
    """Run notebooks two at a time, unless their results are in ``CACHE``; return each with its outputs.

    Of a lesson, the notebook with the solutions is run: what it returns has all outputs and no solutions. What a cell
    prints in one piece is one output: a kernel sends it in parts, whose number depends on how busy the machine is.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    # Imported here: the tests of the releases of PyTorch, which run cells, do without nbconvert.
    from nbconvert.preprocessors import CoalesceStreamsPreprocessor

    paths = list(paths)
    with ThreadPoolExecutor(2) as pool:
        ran = pool.map(lambda path: remove_solutions(run_with_solutions(path)), paths)
        notebooks = dict(zip(paths, ran, strict=True))
    for notebook in notebooks.values():
        CoalesceStreamsPreprocessor(enabled=True).preprocess(notebook, {})  # type: ignore[no-untyped-call]
    return notebooks


def run_with_solutions(path: Path, cache: Path = CACHE) -> Any:
    """Run a notebook, or of a lesson the one with the solutions, unless its result is in ``cache``.

    It is returned with its outputs and without the cell that installs hookviz. Its metadata has, under ``used``, the
    peak memory of its kernel in megabytes, which is None where it cannot be read, and its processor time in seconds,
    as ``MEASURE`` counts them.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    language = language_of(path)
    copy = cache / language / f"{path.stem}-{_fingerprint(path)}.ipynb"
    copy.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(copy.parent / f"{path.stem}.lock"):
        return _read_or_run(path, copy)


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    """Lock a notebook, so that only one process runs it when several need its results at the same time."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read_or_run(path: Path, copy: Path) -> Any:
    if not copy.exists():
        lesson = remove_start(nbformat.read(_with_solutions(path), as_version=4))  # type: ignore[no-untyped-call]
        lesson.cells.insert(0, nbformat.v4.new_code_cell(EMPTY_TOOLBOX))  # type: ignore[no-untyped-call]
        lesson.cells.append(nbformat.v4.new_code_cell(MEASURE))  # type: ignore[no-untyped-call]
        notebook = run_cells(lesson, path.parent, language_of(path))
        del notebook.cells[0]
        notebook.metadata["used"] = ast.literal_eval(notebook.cells.pop().outputs[0].data["text/plain"])
        for old in copy.parent.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, copy)  # type: ignore[no-untyped-call]
    return nbformat.read(copy, as_version=4)  # type: ignore[no-untyped-call]


def _with_solutions(path: Path) -> Path:
    """The path of the notebook that has the solutions to this one, or else this one."""
    solutions = path.parent / "solutions" / path.name
    return solutions if solutions.exists() else path


def run_cells(notebook: Any, folder: Path, language: str = "en") -> Any:
    """Run all cells of ``notebook`` in ``folder``; return the same notebook with its outputs.

    hookviz speaks ``language`` in it.
    """
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=SECONDS_PER_CELL, resources=resources, extra_arguments=QUIET)
    # In a new thread, since an event loop may run in this one, such as that of a browser of the tests.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, client.async_execute(env={**os.environ, VARIABLE: language})).result()
    for cell in notebook.cells:
        # A progress bar leaves an empty output behind.
        cell.get("outputs", [])[:] = [output for output in cell.get("outputs", []) if output.get("data") != {}]
    return notebook


@cache
def _describe_environment() -> str:
    """Describe Python and the installed packages, once: to read their files takes longer than to hash hookviz."""
    return "\n".join([sys.version, *sorted(f"{package.name} {package.version}" for package in distributions())])


def _fingerprint(path: Path) -> str:
    """Hash everything that a notebook's outputs depend on: itself, hookviz, Python, and the installed packages."""
    hookviz = [file for file in sorted((ROOT / "hookviz").rglob("*")) if file.suffix in (".py", ".js", ".css", ".json")]
    texts = [file.read_bytes() for file in (path, _with_solutions(path), *hookviz)]
    return hashlib.sha256(b"\0".join([*texts, _describe_environment().encode()])).hexdigest()[:16]
