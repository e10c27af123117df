"""The program of the process that runs Graphviz: the library can crash, and a crash must not end the user's program.

``graphviz_client`` starts this file by its path, sends jobs to its standard input, and reads the pictures from its
standard output. The file imports neither torch nor hookviz, and little else: every first picture waits for its start.
"""

import faulthandler
import marshal
import os
import struct
import sys
from typing import Any

MEMORY_BYTES = 2 * 1024**3
"""Address space that the process may use, if the system lets a process limit itself (Windows and macOS do not)."""

_LENGTH = struct.Struct("!Q")


def send(descriptor: int, content: Any) -> None:
    """Send plain data: numbers, texts, bytes, and containers of them.

    Raises:
        OSError: the other side is gone.
    """
    packed = marshal.dumps(content)
    rest = memoryview(_LENGTH.pack(len(packed)) + packed)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def receive(descriptor: int) -> Any:
    """Receive the data that the other side has sent with ``send``.

    Raises:
        EOFError: the other side is gone.
    """
    return marshal.loads(_receive_exactly(descriptor, *_LENGTH.unpack(_receive_exactly(descriptor, _LENGTH.size))))


def _receive_exactly(descriptor: int, count: int) -> bytes:
    parts = []
    while count:
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def main(package_folder: str, seconds: str) -> None:
    """Answer jobs until the standard input is closed, which the end of the program does, too.

    Args:
        package_folder: the folder in which the program finds pygraphviz.
        seconds: this process ends if a picture takes longer.
    """
    jobs, answers = os.dup(0), os.dup(1)
    null_device = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # so that nothing that Graphviz prints gets into an answer
        os.dup2(null_device, standard)
    _limit_resources()
    library, reason = None, ""
    try:
        library = _load_library(package_folder)
    except Exception as error:
        reason = str(error)
    while True:
        job = receive(jobs)
        # A timer that runs without the interpreter, which Graphviz blocks.
        faulthandler.dump_traceback_later(float(seconds), exit=True, file=null_device)
        send(answers, ("import", reason.encode()) if library is None else answer_job(job, library))
        faulthandler.cancel_dump_traceback_later()


def _limit_resources() -> None:
    """Limit the memory of this process, and prevent core files in the user's folder after a crash."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MEMORY_BYTES)):
        hard = resource.getrlimit(limit)[1]
        lowest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        try:
            resource.setrlimit(limit, (lowest, hard))
        except (ValueError, OSError):  # macOS refuses some limits
            continue


def _load_library(package_folder: str) -> Any:
    """Load the functions of the Graphviz library, without the rest of pygraphviz, which takes most of the time."""
    sys.path.append(package_folder)
    if sys.platform != "win32":  # on Windows, pygraphviz's own ``__init__`` finds the library
        package: Any = type(sys)("pygraphviz")
        package.__path__ = [os.path.join(package_folder, "pygraphviz")]
        sys.modules["pygraphviz"] = package
    from pygraphviz import graphviz

    return graphviz


def answer_job(job: dict[str, Any], library: Any) -> tuple[str, bytes]:
    """Draw a job, and return (error, content): ``""`` and the picture, or the kind of error and a sentence about it."""
    try:
        return draw_job(job, library)
    except Exception as error:  # such as a lack of memory, which says nothing about the graph
        return "system", f"{type(error).__name__}: {error}".encode(errors="replace")


def draw_job(job: dict[str, Any], library: Any) -> tuple[str, bytes]:
    """Draw a job, and return what ``answer_job`` returns.

    The layout is never freed, since ``gvFreeLayout`` crashes on some graphs; the parent replaces this process now and
    then.
    """
    try:
        graph = _read_graph(job["source"].encode(), library)
    except ValueError:
        return "read", b"its DOT is not valid"
    for name, value in job["attributes"].items():
        _set_attribute(graph, library, name, value.encode())
    context = library.gvContextWithBuiltins()
    if library.gvLayout(context, graph, job["engine"].encode()):
        return "engine", b""
    failed, picture = library.gvRenderData(context, graph, job["format"].encode())
    return ("format", b"") if failed else ("", picture)


def _read_graph(source: bytes, library: Any) -> Any:
    """Read a graph from a file, since the library cannot read text; it is in memory if the system supports that."""
    with _open_file() as file:
        file.write(source)
        file.seek(0)
        return library.agread(file, None)


def _open_file() -> Any:
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("graph"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _set_attribute(graph: Any, library: Any, name: str, value: bytes) -> None:
    """Set an attribute of the graph only, so that its clusters do not inherit it."""
    library.agsafeset_label(graph, graph, name.encode(), value, b"")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    finally:
        os._exit(0)  # without freeing anything: that may crash
