"""The worker processes that run Graphviz for this one: started when a picture is drawn, kept, replaced when they die.

Only Linux was tried. Windows and macOS have no limit on a worker's memory, and a frozen program gets no pictures.
"""

import atexit
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from hookviz.picture import graphviz_worker
from hookviz.picture.graphviz_worker import receive, send
from hookviz.support.interrupts import Uninterrupted
from hookviz.support.messages import say

LAYOUT_SECONDS = 60.0
"""A layout that takes longer is given up."""
GRACE_SECONDS = 5.0
"""The worker ends itself when its time is up; one that does not, since it was stopped, is killed after so much more."""
IDLE_SECONDS = 60.0
"""Without a job for so long a worker ends; the next picture starts another.

It is short because the worker is a child of the program: a program that calls ``os.wait()`` until it has no child left
waits for the worker, too.
"""
MAX_PICTURES = 500
"""Layouts are never freed, some 25 to 200 KB each: after so many pictures another worker takes over."""
MAX_STARTS = 5
"""A worker that somebody kills while it starts is started again, at most so often in all."""
MAX_IDLE = 2
"""Threads that draw at the same time have a worker each; when they are done, no more than this stay."""

_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""Writing to a worker that is gone raises, even where a program has chosen to die of it (SIGPIPE)."""
_PYTHON_HOME = os.environ.get("PYTHONHOME")
"""Where this Python was told to find its library: the worker's Python is the same one."""


@dataclass(frozen=True)
class Job:
    """What a worker shall draw, and what it shall do about the graph before that."""

    source: str
    """The graph as DOT."""
    format: str
    engine: str
    folder: str = ""
    """From where relative paths of images in the graph lead, as ``current_folder`` writes it."""
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Attributes of the whole graph that overrule those in ``source``."""
    drop_invisible_edges: bool = False
    note: str = ""
    """Lines to stand below the picture."""


class Answer(NamedTuple):
    """What the worker says: the picture, or what is wrong."""

    error: str
    """``""``; ``"read"`` (DOT that nobody can read), ``"engine"`` or ``"format"`` (there is none of that name); or
    ``"system"`` (nothing is wrong with the job: the disk is full, for one)."""
    content: bytes
    """The picture; after ``"read"`` and ``"system"`` a sentence."""


class WorkerDiedError(Exception):
    """The worker died of a job: it crashed, took too long, or was killed from outside, perhaps for its memory."""

    def __init__(self, cause: Literal["crash", "time", "killed"]) -> None:
        super().__init__(cause)
        self.cause = cause


class NoWorkerError(Exception):
    """No worker can be started here; the text says why."""


class _KilledAtStartError(NoWorkerError):
    """Another try may succeed."""


def draw_in_worker(job: Job) -> Answer:
    """What a worker makes of ``job``.

    Raises:
        WorkerDiedError: it died of this job, or took too long.
        NoWorkerError: there is none.
    """
    worker = _take_worker()
    has_drawn = worker.pictures
    try:
        return _ask_worker(worker, job)
    except WorkerDiedError as died:
        # A picture before this one may have damaged that worker, or somebody has killed it: a new one tells.
        if died.cause == "time" or not (has_drawn or died.cause == "killed"):
            raise
    return _ask_worker(_new_worker(), job)


def current_folder() -> str:
    """The current folder, each byte of its name as a character; empty where it was deleted."""
    try:
        return os.fsencode(os.getcwd()).decode("latin-1")
    except OSError:
        return ""


def worker_pid() -> int | None:
    """The process id of the worker that draws the next picture; None where one must be started."""
    ready = [worker for worker in _idle if worker.is_ready()]
    return ready[-1].pid if ready else None


def end_workers() -> None:
    """End all workers; the next picture starts another."""
    _idle.clear()
    for worker in list(_workers):
        worker.end()


class _Worker:
    """A process that draws pictures, one at a time."""

    def __init__(self) -> None:
        self.pictures = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        _workers.add(self)
        try:
            self._start()
            self._receive_greeting()
        except BaseException:
            self.end()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None  # it has one from the start on
        return self._process.pid

    @property
    def channel(self) -> socket.socket:
        """The socket to it."""
        assert self._channel is not None  # it has one from the start on
        return self._channel

    def is_ready(self) -> bool:
        """Whether it lives, and the socket is still ours: a program may close all descriptors and use them anew."""
        return self._is_our_socket(self.channel) and self._process is not None and self._process.poll() is None

    def ask(self, job: Job) -> Answer:
        """The answer to ``job``; if there is none, the worker cannot be used any more.

        Raises:
            WorkerDiedError: it died meanwhile, or is not done in time.
        """
        began = time.monotonic()
        try:
            send(self.channel, asdict(job), _NO_SIGNAL)
            error, content = receive(self.channel)
        except OSError:
            raise WorkerDiedError(self._cause_of_death(time.monotonic() - began)) from None
        self.pictures += 1
        return Answer(error, content)

    def end(self) -> None:
        """Kill it, whatever it does, and leave nothing of it behind."""
        with Uninterrupted():
            _workers.discard(self)
            if self._process is not None:
                self._process.kill()
            self.close_socket()
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE_SECONDS)

    def close_socket(self) -> None:
        """Close the socket: a worker that waits for a job ends then."""
        if self._channel is not None and self._is_our_socket(self._channel):
            self._channel.close()
        elif self._channel is not None:
            self._channel.detach()

    def disown(self) -> None:
        """After a fork, the process is the parent's: it cannot be waited for here."""
        self.close_socket()
        if self._process is not None:
            self._process.returncode = 0

    def _start(self) -> None:
        try:
            with Uninterrupted(), _reserve_standard_descriptors():
                self._channel, theirs = socket.socketpair()
                self._identity = os.fstat(self._channel.fileno())
                with theirs:
                    self._process = _start_process(theirs)
        except OSError as error:  # too many files are open, for one
            raise NoWorkerError(say("error.graphviz.start", why=error)) from None

    def _receive_greeting(self) -> None:
        self.channel.settimeout(LAYOUT_SECONDS + GRACE_SECONDS)
        try:
            greeting = receive(self.channel)
        except OSError:
            if self._cause_of_death(0.0) == "killed":
                raise _KilledAtStartError(say("error.graphviz.silent")) from None
            greeting = {"error": "silent"}
        if greeting["error"]:
            raise NoWorkerError(say(f"error.graphviz.{greeting['error']}", why=greeting.get("why", "")))

    def _is_our_socket(self, channel: socket.socket) -> bool:
        try:
            return os.path.samestat(os.fstat(channel.fileno()), self._identity)
        except OSError:
            return False

    def _cause_of_death(self, seconds: float) -> Literal["crash", "time", "killed"]:
        if seconds >= LAYOUT_SECONDS:
            return "time"
        assert self._process is not None  # it was asked
        try:
            status = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "crash"
        return "killed" if -status in _EXTERNAL_SIGNALS else "crash"


_idle: deque[_Worker] = deque()
"""Workers that wait for a job. One that has a job is not in here: if something goes wrong, nobody else gets it."""
_workers: set[_Worker] = set()
"""All workers that were started and not ended."""
_EXTERNAL_SIGNALS = {
    int(getattr(signal, name))
    for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
}
"""What ends a worker that has done nothing wrong; the system also kills (SIGKILL) what uses too much memory."""


def _take_worker() -> _Worker:
    """A worker that waits, or a new one."""
    while _idle:
        with suppress(IndexError):  # another thread may be quicker
            worker = _idle.pop()
            if worker.is_ready():
                return worker
            worker.end()
    return _new_worker()


def _new_worker() -> _Worker:
    """A new worker. Before it has left the program's process group, Ctrl-C in a terminal reaches it, too: try again."""
    for _ in range(MAX_STARTS - 1):
        with suppress(_KilledAtStartError):
            return _Worker()
    return _Worker()


def _ask_worker(worker: _Worker, job: Job) -> Answer:
    try:
        answer = worker.ask(job)
    except BaseException:
        worker.end()
        raise
    if worker.pictures < MAX_PICTURES and len(_idle) < MAX_IDLE:
        _idle.append(worker)
    else:
        worker.end()
    return answer


def _start_process(theirs: socket.socket) -> "subprocess.Popen[bytes]":
    if sys.platform == "win32":  # a socket cannot be a standard stream there
        process = subprocess.Popen(
            _build_command(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_clean_environment(),
            creationflags=subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP,
        )
        assert process.stdin is not None  # it is a pipe
        with process.stdin as pipe:
            pipe.write(theirs.share(process.pid))
        return process
    return subprocess.Popen(
        _build_command(),
        stdin=theirs.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_clean_environment(),
        process_group=0,  # Ctrl-C and Ctrl-Z in a terminal are for the program
    )


def _build_command() -> list[str]:
    """How a worker is started: without ``site``, which it does not need.

    Raises:
        NoWorkerError: there is no Python to start it with, or no pygraphviz.
    """
    if getattr(sys, "frozen", False) or not sys.executable:
        raise NoWorkerError(say("error.graphviz.frozen"))
    try:
        found = importlib.util.find_spec("pygraphviz")
    except ValueError:  # something else has taken its place
        found = None
    if found is None or found.origin is None:
        raise NoWorkerError(say("error.graphviz.missing"))
    package_folder = str(Path(found.origin).resolve().parents[1])
    arguments = [graphviz_worker.__file__, package_folder, str(LAYOUT_SECONDS), str(IDLE_SECONDS)]
    return [sys.executable, "-S", "-P", "-W", "ignore", *arguments]


def _clean_environment() -> dict[str, str]:
    """The environment without what a person may have set for other Pythons since this one was started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return kept if _PYTHON_HOME is None else {**kept, "PYTHONHOME": _PYTHON_HOME}


@contextmanager
def _reserve_standard_descriptors() -> Iterator[None]:
    """Where standard streams are closed, a socket must not get their numbers: what is printed would go into it."""
    taken = [os.open(os.devnull, os.O_RDWR)]
    while taken[-1] <= 2:
        taken.append(os.open(os.devnull, os.O_RDWR))
    try:
        yield
    finally:
        for descriptor in taken:
            os.close(descriptor)


def _disown_workers() -> None:
    """After a fork the workers are the parent's: the child starts its own when it needs one."""
    for worker in list(_workers):
        worker.disown()
    _workers.clear()
    _idle.clear()


atexit.register(end_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_workers)
