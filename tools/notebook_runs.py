"""Run notebooks, each in a fresh kernel, and cache the results until the notebook or the package changes."""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from hookviz.support.messages.languages import LANGUAGES, VARIABLE, current_language
from tools.lesson_start import remove_start
from tools.lessons import remove_solutions

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
CACHE = ROOT / "build" / "run"
QUIET = ["--IPKernelApp.log_level=ERROR"]


def run_all(paths: Iterable[Path], cache: Path = CACHE) -> dict[Path, Any]:
    """Run notebooks two at a time, unless their results are in ``cache``; return each with its outputs.

    Of a lesson, the notebook with the solutions is run: what it returns has all outputs, no solutions, and no cell that
    installs hookviz.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    cache.mkdir(parents=True, exist_ok=True)
    paths = list(paths)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(paths, pool.map(lambda path: _run_cached(path, cache), paths), strict=True))


def _run_cached(path: Path, cache: Path) -> Any:
    language = language_of(path)
    copy = cache / language / f"{path.stem}-{_fingerprint(path)}.ipynb"
    copy.parent.mkdir(exist_ok=True)
    with _exclusive(copy.parent / f"{path.stem}.lock"):
        return _read_or_run(path, copy)


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    """Lock a notebook, so that only one process runs it when site and slides are made at the same time."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read_or_run(path: Path, copy: Path) -> Any:
    if not copy.exists():
        lesson = remove_start(nbformat.read(_with_solutions(path), as_version=4))  # type: ignore[no-untyped-call]
        notebook = run_cells(lesson, path.parent, language_of(path))
        notebook = remove_solutions(notebook)
        for old in copy.parent.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, copy)  # type: ignore[no-untyped-call]
    return nbformat.read(copy, as_version=4)  # type: ignore[no-untyped-call]


def _with_solutions(path: Path) -> Path:
    """The path of the notebook that has the solutions to this one, or else this one."""
    solutions = path.parent / "solutions" / path.name
    return solutions if solutions.exists() else path


def language_of(path: Path) -> str:
    """The language of a notebook: each edition in another language than English has a folder of its own."""
    return path.parent.name if path.parent.name in LANGUAGES else "en"


def folder_of(language: str) -> Path:
    """The folder of the lessons in a language."""
    return NOTEBOOKS if language == "en" else NOTEBOOKS / language


def in_language(target: Path) -> Path:
    """The folder for what is made in the current language: ``target``, or for another language one in it."""
    language = current_language()
    return target if language == "en" else target / language


def run_cells(notebook: Any, folder: Path, language: str = "en") -> Any:
    """Run all cells of ``notebook`` in ``folder``; return the same notebook with its outputs.

    hookviz speaks ``language`` in it.
    """
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=120, resources=resources, extra_arguments=QUIET)
    # A thread has no event loop; asyncio.run makes one and closes it.
    asyncio.run(client.async_execute(env={**os.environ, VARIABLE: language}))
    for cell in notebook.cells:
        # A progress bar leaves an empty output behind.
        cell.get("outputs", [])[:] = [output for output in cell.get("outputs", []) if output.get("data") != {}]
    return notebook


def _fingerprint(path: Path) -> str:
    """Hash everything that a notebook's outputs depend on: itself, the package, and the installed packages."""
    package = [file for file in sorted((ROOT / "hookviz").rglob("*")) if file.suffix in (".py", ".js", ".css", ".json")]
    texts = [file.read_bytes() for file in (path, _with_solutions(path), ROOT / "constraints.txt", *package)]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]
