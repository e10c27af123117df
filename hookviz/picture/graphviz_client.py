"""The worker processes that run Graphviz: started when a picture is drawn, reused, and replaced when they die.

Only Linux was tried. On Windows and macOS a worker's memory is unlimited, and a frozen program gets no pictures.
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
"""A layout is stopped after this time."""
GRACE_SECONDS = 5.0
"""A worker ends itself when its time is up; a suspended one cannot do so, and is killed after this extra time."""
IDLE_SECONDS = 60.0
"""A worker ends after this time without a job; the next picture starts another.

This is short because the worker is a child of the program: a program that calls ``os.wait()`` until it has no more
children waits for the worker, too.
"""
MAX_PICTURES = 500
"""A worker is replaced after this number of pictures: it never frees their layouts, of 25 to 200 KB each."""
MAX_STARTS = 5
"""The maximum number of workers that are started for one picture, if somebody kills them while they start."""
MAX_IDLE = 2
"""The maximum number of idle workers. Threads that draw at the same time have a worker each; the others end then."""

_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""With this flag, writing to a worker that is gone raises, even in a program that lets SIGPIPE kill it."""
_PYTHON_HOME = os.environ.get("PYTHONHOME")
"""The library folder of this Python, which the worker uses, too: it runs the same Python."""


@dataclass(frozen=True)
class Job:
    """A picture to be drawn by a worker, with changes to the graph before that."""

    source: str
    """The graph as DOT."""
    format: str
    engine: str
    folder: str = ""
    """The folder for relative paths of images in the graph, in the format of ``current_folder``."""
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Attributes of the whole graph that overrule those in ``source``."""
    drop_invisible_edges: bool = False
    note: str = ""
    """Lines below the picture."""


class Answer(NamedTuple):
    """The answer of a worker: a picture, or an error."""

    error: str
    """``""`` for none; ``"read"`` for invalid DOT; ``"engine"`` or ``"format"`` if it does not exist; ``"system"`` if
    nothing is wrong with the job, but the disk is full, for example."""
    content: bytes
    """The picture; for ``"read"`` and ``"system"`` a sentence about the error."""


class WorkerDiedError(Exception):
    """The worker died during a job: it crashed, took too long, or was killed, perhaps for its use of memory."""

    def __init__(self, cause: Literal["crash", "time", "killed"]) -> None:
        super().__init__(cause)
        self.cause = cause


class NoWorkerError(Exception):
    """No worker can be started here; the text says why."""


class _KilledAtStartError(NoWorkerError):
    """A worker was killed while it started; another try may succeed."""


def draw_in_worker(job: Job) -> Answer:
    """Let a worker draw ``job``, and return its answer.

    Raises:
        WorkerDiedError: the worker died of this job, or took too long.
        NoWorkerError: no worker can be started.
    """
    worker = _take_worker()
    has_drawn = worker.pictures > 0
    try:
        return _ask_worker(worker, job)
    except WorkerDiedError as died:
        # An earlier picture may have damaged that worker, or somebody killed it: a new worker will show.
        if died.cause == "time" or not (has_drawn or died.cause == "killed"):
            raise
    return _ask_worker(_start_worker(), job)


def current_folder() -> str:
    """Return the current folder with each byte of its name as one character; empty if it was deleted."""
    try:
        return os.fsencode(os.getcwd()).decode("latin-1")
    except OSError:
        return ""


def worker_pid() -> int | None:
    """Return the process id of the worker that will draw the next picture; None if one must be started."""
    ready_workers = [worker for worker in _idle_workers if worker.is_ready()]
    return ready_workers[-1].pid if ready_workers else None


def end_workers() -> None:
    """End all workers; the next picture starts another."""
    _idle_workers.clear()
    for worker in list(_workers):
        worker.end()


class _Worker:
    """A process that draws pictures, one at a time, and the socket to it."""

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
        assert self._process is not None  # set when the worker was started
        return self._process.pid

    @property
    def channel(self) -> socket.socket:
        """The socket to it."""
        assert self._channel is not None  # set when the worker was started
        return self._channel

    def is_ready(self) -> bool:
        """Whether it runs, and the socket is still ours: a program may close all descriptors and reuse the numbers."""
        return self._is_our_socket(self.channel) and self._process is not None and self._process.poll() is None

    def ask(self, job: Job) -> Answer:
        """Return the answer to ``job``; after an exception, the worker cannot be used any more.

        Raises:
            WorkerDiedError: the worker died meanwhile, or took too long.
        """
        start_time = time.monotonic()
        try:
            send(self.channel, asdict(job), _NO_SIGNAL)
            error, content = receive(self.channel)
        except OSError:
            raise WorkerDiedError(self._find_cause_of_death(time.monotonic() - start_time)) from None
        self.pictures += 1
        return Answer(error, content)

    def end(self) -> None:
        """Kill the process, even while it draws, close the socket, and wait until the process has ended."""
        with Uninterrupted():
            _workers.discard(self)
            if self._process is not None:
                self._process.kill()
            self.close_socket()
            if self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE_SECONDS)

    def close_socket(self) -> None:
        """Close the socket; a worker that waits for a job ends then."""
        if self._channel is not None and self._is_our_socket(self._channel):
            self._channel.close()
        elif self._channel is not None:
            self._channel.detach()

    def disown(self) -> None:
        """Forget the process after a fork: it is a child of the parent, and this process cannot wait for it."""
        self.close_socket()
        if self._process is not None:
            self._process.returncode = 0

    def _start(self) -> None:
        try:
            with Uninterrupted(), _reserve_standard_descriptors():
                self._channel, worker_socket = socket.socketpair()
                self._identity = os.fstat(self._channel.fileno())
                with worker_socket:
                    self._process = _start_process(worker_socket)
        except OSError as error:  # such as too many open files
            raise NoWorkerError(say("error.graphviz.start", why=error)) from None

    def _receive_greeting(self) -> None:
        self.channel.settimeout(LAYOUT_SECONDS + GRACE_SECONDS)
        try:
            greeting = receive(self.channel)
        except OSError:
            if self._find_cause_of_death(0.0) == "killed":
                raise _KilledAtStartError(say("error.graphviz.silent")) from None
            greeting = {"error": "silent"}
        if greeting["error"]:
            raise NoWorkerError(say(f"error.graphviz.{greeting['error']}", why=greeting.get("why", "")))

    def _is_our_socket(self, channel: socket.socket) -> bool:
        try:
            return os.path.samestat(os.fstat(channel.fileno()), self._identity)
        except OSError:
            return False

    def _find_cause_of_death(self, seconds: float) -> Literal["crash", "time", "killed"]:
        """Find out why the worker did not answer within ``seconds``."""
        if seconds >= LAYOUT_SECONDS:
            return "time"
        assert self._process is not None  # set when the worker was started
        try:
            status = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return "crash"
        return "killed" if -status in _EXTERNAL_SIGNALS else "crash"


_idle_workers: deque[_Worker] = deque()
"""Workers that wait for a job. A worker with a job is not among them, so that after an error nobody else gets it."""
_workers: set[_Worker] = set()
"""All workers that were started and have not been ended."""
_EXTERNAL_SIGNALS = {
    int(getattr(signal, name))
    for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
}
"""Signals from outside that end a worker; the system sends SIGKILL to processes that use too much memory."""


def _take_worker() -> _Worker:
    """Take an idle worker, or start a new one."""
    while _idle_workers:
        with suppress(IndexError):  # another thread may take the last one first
            worker = _idle_workers.pop()
            if worker.is_ready():
                return worker
            worker.end()
    return _start_worker()


def _start_worker() -> _Worker:
    """Start a new worker; try again if it is killed while it starts.

    Ctrl-C in a terminal reaches it until it has left the program's process group.
    """
    for _ in range(MAX_STARTS - 1):
        with suppress(_KilledAtStartError):
            return _Worker()
    return _Worker()


def _ask_worker(worker: _Worker, job: Job) -> Answer:
    """Return the answer of ``worker``, and make it idle again, or end it."""
    try:
        answer = worker.ask(job)
    except BaseException:
        worker.end()
        raise
    if worker.pictures < MAX_PICTURES and len(_idle_workers) < MAX_IDLE:
        _idle_workers.append(worker)
    else:
        worker.end()
    return answer


def _start_process(worker_socket: socket.socket) -> "subprocess.Popen[bytes]":
    """Start a worker process with the socket ``worker_socket`` as its standard input."""
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
            pipe.write(worker_socket.share(process.pid))
        return process
    return subprocess.Popen(
        _build_command(),
        stdin=worker_socket.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_clean_environment(),
        process_group=0,  # Ctrl-C and Ctrl-Z in a terminal are for the program
    )


def _build_command() -> list[str]:
    """Build the command that starts a worker, without ``site``, which it does not need.

    Raises:
        NoWorkerError: there is no Python to run it, or no pygraphviz.
    """
    if getattr(sys, "frozen", False) or not sys.executable:
        raise NoWorkerError(say("error.graphviz.frozen"))
    try:
        package = importlib.util.find_spec("pygraphviz")
    except ValueError:  # ``sys.modules`` has a module of that name without a spec
        package = None
    if package is None or package.origin is None:
        raise NoWorkerError(say("error.graphviz.missing"))
    package_folder = str(Path(package.origin).resolve().parents[1])
    arguments = [graphviz_worker.__file__, package_folder, str(LAYOUT_SECONDS), str(IDLE_SECONDS)]
    return [sys.executable, "-S", "-P", "-W", "ignore", *arguments]


def _clean_environment() -> dict[str, str]:
    """Return the environment without Python's variables, which may be for other Pythons; ``PYTHONHOME`` is ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return environment if _PYTHON_HOME is None else {**environment, "PYTHONHOME": _PYTHON_HOME}


@contextmanager
def _reserve_standard_descriptors() -> Iterator[None]:
    """Reserve the descriptors of closed standard streams, so that no socket gets them: prints would go into it."""
    descriptors = [os.open(os.devnull, os.O_RDWR)]
    while descriptors[-1] <= 2:
        descriptors.append(os.open(os.devnull, os.O_RDWR))
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _disown_workers() -> None:
    """Forget all workers in a forked child: they belong to the parent, and the child starts its own."""
    for worker in list(_workers):
        worker.disown()
    _workers.clear()
    _idle_workers.clear()


atexit.register(end_workers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_workers)
