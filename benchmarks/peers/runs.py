"""Run measurements in processes of their own, round by round, and describe their failures."""

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
"""The results of one tool with one work: name of a measurement → numbers of all rounds; and ``failed``, if it did."""

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, TIMEOUT = 5, 120.0
"""Rounds per tool, and seconds after which a process is stopped."""


@contextmanager
def environment_with_dot() -> Iterator[dict[str, str]]:
    """Make environment variables with which every machine finds the same ``dot``."""
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder))
        yield {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}


def run_measurement(work: str, peer: str, stages: str) -> dict[str, Any]:
    """Measure in a new process; return all its findings in one dict, with ``failed`` if it ends early."""
    command = [sys.executable, "-m", "benchmarks.peers.measurement", work, peer, stages]
    with environment_with_dot() as environment:
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        try:
            output, errors = process.communicate(timeout=TIMEOUT)
            failure = describe_failure(process.returncode, errors)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, failure = process.communicate()[0], {"failed": f"more than {TIMEOUT:g} s"}
    return {**failure, **{name: value for finding in parse_findings(output) for name, value in finding.items()}}


def parse_findings(output: str) -> Iterator[dict[str, Any]]:
    """Yield the findings among the lines of a process's output; tools print, too."""
    for line in output.splitlines():
        with suppress(json.JSONDecodeError):
            finding = json.loads(line)
            if isinstance(finding, dict):
                yield finding


def describe_failure(status: int, errors: str) -> dict[str, str]:
    """Describe how a process failed; an empty dict if it did not."""
    if status < 0:
        return {"failed": f"crashes ({signal.Signals(-status).name})"}
    if status:
        return {"failed": f"ends with status {status}: {(errors.strip().splitlines() or ['it said nothing'])[-1]}"}
    return {}


def new_cell(peer: str) -> Cell:
    """Make a cell without measurements."""
    return {"date": datetime.date.today().isoformat(), "version": version(peer)}


def version(peer: str) -> str:
    """The version of a tool, or ``not installed``."""
    package = PLAIN.package if peer == "plain" else PEERS[peer].package
    if package == "hookviz":
        return hookviz.__version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def add_round(cell: Cell, work: str, peer: str) -> None:
    """Add a round of ``peer`` with ``work`` to a cell; do not retry a stage that failed in an earlier round."""
    stage = cell.get("failed", {}).get("stage")
    if stage in ("capture", "hooks"):
        return
    findings = run_measurement(work, peer, "capture" if stage == "picture" or peer == "plain" else "capture,picture")
    why = findings.pop("failed", None)
    if why:
        stage = "hooks" if work == "hooks" else "picture" if "capture" in findings else "capture"
        cell["failed"] = {"stage": stage, "why": why}
    for name, value in findings.items():
        cell.setdefault(name, []).append(value)


def run_rounds(works: Sequence[str], peers: Sequence[str]) -> Iterator[tuple[str, dict[str, Cell]]]:
    """Yield each work with the cells of ``peers``; each round runs all of them, under the same load."""
    total = sum(len(peers) if work == "hooks" else ROUNDS * (len(peers) + 1) for work in works)
    with tqdm(total=total) as bar:
        for work in works:
            cells = {peer: new_cell(peer) for peer in (peers if work == "hooks" else ["plain", *peers])}
            for _ in range(1 if work == "hooks" else ROUNDS):
                for peer, found in cells.items():
                    bar.set_description(f"{work} {peer}")
                    add_round(found, work, peer)
                    bar.update()
            yield work, cells
