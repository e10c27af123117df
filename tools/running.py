"""Notebooks with their outputs, each run in a fresh kernel; what nothing has changed since is not run again."""

import asyncio
import fcntl
import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
KEPT = ROOT / "build" / "run"
QUIET = ["--IPKernelApp.log_level=ERROR"]


def run_all(paths: Iterable[Path], kept: Path = KEPT) -> dict[Path, Any]:
    """The notebooks with their outputs, two at a time.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    kept.mkdir(parents=True, exist_ok=True)
    paths = list(paths)
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(paths, pool.map(lambda path: _ran(path, kept), paths), strict=True))


def _ran(path: Path, kept: Path) -> Any:
    copy = kept / f"{path.stem}-{_fingerprint(path)}.ipynb"
    with _alone(kept / f"{path.stem}.lock"):
        return _read_or_run(path, kept, copy)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Keep other processes from this notebook: where site and slides are made at once, one of them runs it."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read_or_run(path: Path, kept: Path, copy: Path) -> Any:
    if not copy.exists():
        notebook = run(nbformat.read(path, as_version=4), path.parent)  # type: ignore[no-untyped-call]
        for old in kept.glob(f"{path.stem}-*.ipynb"):
            old.unlink()
        nbformat.write(notebook, copy)  # type: ignore[no-untyped-call]
    return nbformat.read(copy, as_version=4)  # type: ignore[no-untyped-call]


def run(notebook: Any, folder: Path) -> Any:
    """The notebook itself, after each of its cells ran in ``folder``."""
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=120, resources=resources, extra_arguments=QUIET)
    # A thread has no event loop; this one is closed in the end.
    asyncio.run(client.async_execute())
    for cell in notebook.cells:
        # A bar that showed how far something was leaves an output with nothing in it.
        cell.get("outputs", [])[:] = [output for output in cell.get("outputs", []) if output.get("data") != {}]
    return notebook


def _fingerprint(path: Path) -> str:
    """Of all that decides what a notebook shows: itself, the package, and the packages that are installed."""
    package = [file for file in sorted((ROOT / "hookviz").rglob("*")) if file.suffix in (".py", ".js", ".css", ".json")]
    texts = [file.read_bytes() for file in (path, ROOT / "constraints.txt", *package)]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]
