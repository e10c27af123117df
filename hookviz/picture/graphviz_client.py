"""The process that runs Graphviz: started when the first picture is drawn, and replaced when it dies.

Only Linux was tried. On Windows and macOS the memory of the process is unlimited.
"""

import atexit
import importlib.util
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from hookviz.picture import graphviz_worker
from hookviz.picture.graphviz_worker import receive, send
from hookviz.support.interpreter import Uninterrupted
from hookviz.support.messages import _

LAYOUT_SECONDS = 60.0
"""A layout is stopped after this time."""
MAX_PICTURES = 500
"""The process is replaced after this number of pictures: it never frees their layouts, of 25 to 200 KB each."""


@dataclass(frozen=True)
class Job:
    """A picture to be drawn, with changes to the graph before that."""

    source: str
    """The graph as DOT."""
    format: str
    engine: str
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Attributes of the whole graph that overrule those in ``source``."""


class Answer(NamedTuple):
    """The answer to a job: a picture, or an error."""

    error: str
    """``""`` for none; ``"read"`` for invalid DOT; ``"engine"`` or ``"format"`` if it does not exist; ``"import"`` if
    Graphviz cannot be loaded; ``"system"`` if nothing is wrong with the job, but memory is short, for example."""
    content: bytes
    """The picture; for ``"read"``, ``"import"`` and ``"system"`` a sentence about the error."""


class WorkerDiedError(Exception):
    """The process died during a job: it crashed, took too long, or was killed, perhaps for its use of memory."""

    def __init__(self, cause: Literal["crash", "time"]) -> None:
        super().__init__(cause)
        self.cause = cause


class NoWorkerError(Exception):
    """The process cannot be started here; the text says why."""


class _Worker:
    """The process. It draws one picture at a time, and ends when its standard input is closed."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None and process.stdout is not None  # both are pipes
        self.process, self.jobs, self.answers = process, process.stdin, process.stdout
        self.pictures = 0
        self.is_busy = False
        """Whether it has a job; it keeps this mark if the wait for its answer was interrupted."""

    def can_draw(self) -> bool:
        """Whether it lives, waits for a job, and has drawn few pictures."""
        return self.process.poll() is None and not self.is_busy and self.pictures < MAX_PICTURES

    def ask(self, job: Job) -> Answer:
        """Return the answer to ``job``.

        Raises:
            WorkerDiedError: the process died meanwhile, or took too long.
        """
        self.is_busy = True
        start_time = time.monotonic()
        try:
            send(self.jobs.fileno(), asdict(job))
            answer = Answer(*receive(self.answers.fileno()))
        except (OSError, EOFError):
            timed_out = time.monotonic() - start_time >= LAYOUT_SECONDS
            raise WorkerDiedError("time" if timed_out else "crash") from None
        self.pictures += 1
        self.is_busy = False
        return answer

    def end(self) -> None:
        """Kill the process, even while it draws, and wait until it has ended."""
        self.process.kill()
        self.close_pipes()
        self.process.wait()

    def close_pipes(self) -> None:
        """Close the pipes to the process, which ends it when it waits for a job."""
        self.jobs.close()
        self.answers.close()


_worker: _Worker | None = None
_lock = threading.Lock()
"""Held while a picture is drawn: pictures are drawn one after the other."""


def draw_in_worker(job: Job) -> Answer:
    """Let the process draw ``job``, and return its answer.

    Raises:
        WorkerDiedError: the process died of this job, or took too long.
        NoWorkerError: the process cannot be started.
    """
    with _lock:
        worker = _find_worker()
        has_drawn = worker.pictures > 0
        try:
            return _ask(worker, job)
        except WorkerDiedError as died:
            # An earlier picture may have damaged that process, or somebody killed it: a new one will show.
            if died.cause == "time" or not has_drawn:
                raise
        return _ask(_find_worker(), job)


def worker_pid() -> int | None:
    """Return the id of the process that will draw the next picture; None if it must be started."""
    return _worker.process.pid if _worker is not None and _worker.can_draw() else None


def end_worker() -> None:
    """End the process; the next picture starts another."""
    global _worker
    with Uninterrupted():
        worker, _worker = _worker, None
        if worker is not None:
            worker.end()


def _find_worker() -> _Worker:
    """Return the running process, or start a new one."""
    global _worker
    if _worker is not None and not _worker.can_draw():
        end_worker()
    if _worker is None:
        with Uninterrupted():
            _worker = _Worker(_start_process())
    return _worker


def _ask(worker: _Worker, job: Job) -> Answer:
    """Return the answer of ``worker``; it is ended if it has none, or if the wait is interrupted."""
    try:
        return worker.ask(job)
    except BaseException:
        end_worker()
        raise


def _start_process() -> "subprocess.Popen[bytes]":
    """Start the process, without ``site``, which it does not need, and without Python's variables of the environment.

    Raises:
        NoWorkerError: there is no Python to run it, no pygraphviz, or it cannot be started.
    """
    if getattr(sys, "frozen", False) or not sys.executable:
        raise NoWorkerError(
            _(
                "There is no picture: hookviz runs Graphviz in a separate Python process, and a frozen "
                "program has no Python interpreter to start."
            )
        )
    package = importlib.util.find_spec("pygraphviz")
    if package is None or package.origin is None:
        raise NoWorkerError(
            _('There is no picture: pygraphviz is not installed. Install it with: pip install "pygraphviz>=2.0"')
        )
    package_folder = str(Path(package.origin).resolve().parents[1])
    command = [sys.executable, "-I", "-S", graphviz_worker.__file__, package_folder, str(LAYOUT_SECONDS)]
    options: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    # Ctrl-C and Ctrl-Z in a terminal are for the program, not for this process.
    if sys.platform == "win32":
        options["creationflags"] = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
    else:
        options["process_group"] = 0
    try:
        return subprocess.Popen(command, bufsize=0, **options)
    except OSError as error:  # such as too many open files
        raise NoWorkerError(
            _(
                "There is no picture: hookviz runs Graphviz in a separate process, and that process could "
                "not be started ({why})."
            ).format(why=error)
        ) from None


atexit.register(end_worker)
