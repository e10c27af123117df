"""Measurements in processes of their own, round by round, and what became of those that failed."""

import datetime
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tqdm import tqdm

import hookviz
from benchmarks.peers.dot import install
from benchmarks.peers.tools import PEERS, PLAIN

Cell = dict[str, Any]
"""What one tool does with one work: for each thing measured the numbers of all rounds, and ``failed``, if it did."""

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, LIMIT = 5, 120.0
"""How often each tool has its turn, and the seconds that a process may take."""


@contextmanager
def programs() -> Iterator[dict[str, str]]:
    """An environment in which a ``dot`` is found, and the same one on every machine."""
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder))
        yield {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def measured(work: str, peer: str, stages: str) -> dict[str, Any]:
    """What a new process finds, all findings in one; ``failed`` says in words why it found no more."""
    command = [sys.executable, "-m", "benchmarks.peers.one", work, peer, stages]
    with programs() as environment:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            said, errors = process.communicate(timeout=LIMIT)
            end = ending(process.returncode, errors)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, end = process.communicate()[0], {"failed": f"more than {LIMIT:g} s"}
    return {**end, **{name: value for found in lines(said) for name, value in found.items()}}


def lines(said: str) -> Iterator[dict[str, Any]]:
    """The findings among the lines that a process has printed; tools print, too."""
    for text in said.splitlines():
        with suppress(json.JSONDecodeError):
            found = json.loads(text)
            if isinstance(found, dict):
                yield found


def ending(status: int, errors: str) -> dict[str, str]:
    """How a process ended, if not well."""
    if status < 0:
        return {"failed": f"crashes ({signal.Signals(-status).name})"}
    if status:
        return {"failed": f"ends with status {status}: {(errors.strip().splitlines() or ['it said nothing'])[-1]}"}
    return {}


def cell(peer: str) -> Cell:
    """A cell with nothing in it yet."""
    return {"date": datetime.date.today().isoformat(), "version": version(peer)}


def version(peer: str) -> str:
    """The version of a tool, or that it is not there."""
    package = PLAIN.package if peer == "plain" else PEERS[peer].package
    if package == "hookviz":
        return hookviz.__version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def add(cell: Cell, work: str, peer: str) -> None:
    """One more round of ``peer`` with ``work``; what failed in an earlier one is not tried again."""
    stage = cell.get("failed", {}).get("stage")
    if stage in ("capture", "hooks"):
        return
    found = measured(work, peer, "capture" if stage == "picture" or peer == "plain" else "capture,picture")
    why = found.pop("failed", None)
    if why:
        stage = "hooks" if work == "hooks" else "picture" if "capture" in found else "capture"
        cell["failed"] = {"stage": stage, "why": why}
    for name, value in found.items():
        cell.setdefault(name, []).append(value)


def rounds(works: Sequence[str], peers: Sequence[str]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Work after work, the cells of ``peers``; a round goes through all of them, so that each sees the same machine."""
    total = sum(len(peers) if work == "hooks" else ROUNDS * (len(peers) + 1) for work in works)
    with tqdm(total=total) as bar:
        for work in works:
            cells = {peer: cell(peer) for peer in (peers if work == "hooks" else ["plain", *peers])}
            for _ in range(1 if work == "hooks" else ROUNDS):
                for peer, found in cells.items():
                    bar.set_description(f"{work} {peer}")
                    add(found, work, peer)
                    bar.update()
            yield work, cells
