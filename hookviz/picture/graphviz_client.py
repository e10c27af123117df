"""The worker process that runs Graphviz for this one: started at the first picture, kept, replaced when it dies.

Only Linux was tried. Windows and macOS have no limit on the worker's memory, and a frozen program gets no pictures.
"""

import atexit
import importlib.util
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hookviz.picture import graphviz_worker
from hookviz.picture.graphviz_worker import read_frame, write_frame
from hookviz.whole import Uninterrupted
from hookviz.words import say

SECONDS = 60.0
"""A layout that takes longer is given up."""
GRACE_SECONDS = 5.0
"""The worker ends itself when its time is up; one that does not, since it was stopped, is killed after so much more."""
MOST_PICTURES = 500
"""Layouts are never freed, some 25 to 200 KB each: after so many pictures another worker takes over."""


@dataclass(frozen=True)
class Job:
    """What the worker shall draw, and what it shall do about the graph before that."""

    source: str
    """The graph as DOT."""
    format: str
    engine: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Attributes of the whole graph that overrule those in ``source``."""
    drop_invisible_edges: bool = False
    note: str = ""
    """A line below the picture, as DOT escapes it."""


class Answer(NamedTuple):
    """What the worker says: the picture, or what is wrong with the job."""

    error: str
    """``""``, ``"read"`` (DOT that nobody can read), ``"engine"`` or ``"format"`` (there is none of that name)."""
    content: bytes
    """The picture; in case of ``"read"`` what Graphviz said."""


class WorkerDiedError(Exception):
    """Graphviz crashed, or did not finish in time; ``in_time`` tells them apart."""

    def __init__(self, *, in_time: bool) -> None:
        super().__init__(in_time)
        self.in_time = in_time


class NoWorkerError(Exception):
    """No worker can be started here; the text says why."""


def draw(job: Job) -> Answer:
    """What the worker makes of ``job``.

    Raises:
        WorkerDiedError: it died of this job, or took too long.
        NoWorkerError: there is none.
    """
    with _state.lock:
        used = _ready_worker().pictures
        try:
            return _answer(job)
        except WorkerDiedError as died:
            if not used or not died.in_time:
                raise
        # A picture before this one may have damaged that worker: only a new one tells.
        return _answer(job)


def worker_pid() -> int | None:
    """The process id of the worker; None where no picture was drawn yet, or the worker has ended."""
    worker = _state.worker
    return None if worker is None or worker.process.poll() is not None else worker.process.pid


def close() -> None:
    """End the worker, if there is one; the next picture starts another."""
    with _state.lock:
        _end_worker()


class _State:
    """The worker of this process and the lock around it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.worker: _Worker | None = None


class _Worker:
    """A process that is ready for jobs."""

    def __init__(self) -> None:
        self.pictures = 0
        self.process = _start()

    def ask(self, job: Job) -> Answer:
        """The answer to ``job``; whatever goes wrong, the worker cannot be used after that."""
        began = time.monotonic()
        with _killed_after(self.process, SECONDS + GRACE_SECONDS):
            try:
                jobs, answers = _pipes(self.process)
                write_frame(jobs, json.dumps({**asdict(job), "folder": _folder()}).encode())
                head, content = read_frame(answers), read_frame(answers)
            except OSError:
                head = content = None
        if head is None or content is None:
            raise WorkerDiedError(in_time=time.monotonic() - began < SECONDS)
        self.pictures += 1
        return Answer(json.loads(head)["error"], content)


_state = _State()


def _answer(job: Job) -> Answer:
    worker = _ready_worker()
    try:
        return worker.ask(job)
    except BaseException:  # an interrupt leaves half an answer in the pipe
        _end_worker()
        raise


def _ready_worker() -> _Worker:
    """The worker that there is, unless it has ended or had its share; else a new one."""
    worker = _state.worker
    if worker is not None and (worker.process.poll() is not None or worker.pictures >= MOST_PICTURES):
        _end_worker()
    if _state.worker is None:
        _state.worker = _Worker()
        atexit.unregister(close)
        atexit.register(close)
    return _state.worker


def _end_worker() -> None:
    worker, _state.worker = _state.worker, None
    if worker is not None:
        _end(worker.process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    for pipe in _pipes(process):
        with suppress(OSError):
            pipe.close()
    process.wait()


def _start() -> "subprocess.Popen[bytes]":
    """A process that has loaded Graphviz."""
    try:
        with Uninterrupted(), _standard_descriptors_taken():
            process = subprocess.Popen(
                _command(),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
    except OSError as error:
        raise NoWorkerError(say("error.graphviz.start", why=error)) from None
    try:
        with _killed_after(process, SECONDS + GRACE_SECONDS):
            greeting = read_frame(_pipes(process)[1])
        said = {"error": "silent"} if greeting is None else json.loads(greeting)
        if said["error"]:
            raise NoWorkerError(say(f"error.graphviz.{said['error']}", why=said.get("why", "")))
    except BaseException:
        _end(process)
        raise
    return process


def _command() -> list[str]:
    """How the worker is started: without ``site``, which it does not need, and deaf to what a person set for Python.

    Raises:
        NoWorkerError: there is no Python to start it with, or no pygraphviz.
    """
    if getattr(sys, "frozen", False) or not sys.executable:
        raise NoWorkerError(say("error.graphviz.frozen"))
    found = importlib.util.find_spec("pygraphviz")
    if found is None or found.origin is None:
        raise NoWorkerError(say("error.graphviz.missing"))
    package_folder = str(Path(found.origin).resolve().parents[1])
    return [sys.executable, "-S", "-P", "-W", "ignore", graphviz_worker.__file__, package_folder, str(SECONDS)]


def _pipes(process: "subprocess.Popen[bytes]") -> tuple[BinaryIO, BinaryIO]:
    assert process.stdin is not None and process.stdout is not None  # both are pipes
    return process.stdin, process.stdout  # type: ignore[return-value]  # unbuffered, they are files as well


def _folder() -> str:
    """The current folder; none where somebody has deleted it."""
    try:
        return os.getcwd()
    except OSError:
        return ""


@contextmanager
def _standard_descriptors_taken() -> Iterator[None]:
    """Where standard streams are closed, a pipe must not get their numbers: what is printed would go into it."""
    taken = [os.open(os.devnull, os.O_RDWR)]
    while taken[-1] <= 2:
        taken.append(os.open(os.devnull, os.O_RDWR))
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


@contextmanager
def _killed_after(process: "subprocess.Popen[bytes]", seconds: float) -> Iterator[None]:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    with suppress(RuntimeError):  # a program that is ending starts no threads; the worker has a timer of its own
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _forget_worker() -> None:
    """After a fork the worker is the parent's: the child lets go of the pipes, and starts its own when it needs one."""
    worker = _state.worker
    _state.__init__()  # type: ignore[misc]  # another thread may have held the lock
    if worker is not None:
        for pipe in _pipes(worker.process):
            pipe.close()
        worker.process.returncode = 0  # it cannot wait for a process that is not its own


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_worker)
