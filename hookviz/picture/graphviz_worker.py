"""Graphviz in a process of its own: the library can crash, and a crash must not take a notebook along.

``graphviz_client`` starts this file by its path and talks to it through a socket: a job comes in, a picture goes out.
The file imports neither torch nor hookviz, so the process starts in a twentieth of a second.
"""

import faulthandler
import importlib
import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from html import escape
from typing import Any

MEMORY_BYTES = 2 * 1024**3
"""Address space that the worker may use, where the system lets a process limit itself (not on Windows, nor macOS)."""

_LENGTH = struct.Struct("!Q")
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""Writing to a process that is gone raises, even where a program has chosen to die of it (SIGPIPE)."""


def send(channel: socket.socket, content: bytes) -> None:
    """Send ``content`` with its length before it.

    Raises:
        OSError: the other side is gone, or did not take it in time.
    """
    channel.sendall(_LENGTH.pack(len(content)) + content, _NO_SIGNAL)


def receive(channel: socket.socket) -> bytes:
    """What ``send`` has sent on the other side.

    Raises:
        OSError: the other side is gone, or sent nothing in time.
    """
    return _receive_exactly(channel, *_LENGTH.unpack(_receive_exactly(channel, _LENGTH.size)))


def _receive_exactly(channel: socket.socket, count: int) -> bytes:
    parts = []
    while count:
        part = channel.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def main(package_folder: str, seconds: str, idle_seconds: str) -> None:
    """Answer jobs until nobody is there to ask.

    Args:
        package_folder: where the parent process finds pygraphviz.
        seconds: what takes longer, loading Graphviz or one picture, ends this process.
        idle_seconds: and so does waiting for a job for so long.
    """
    channel, void = _take_streams()
    _end_after(float(seconds), void)
    _limit_resources()
    sys.path.append(package_folder)
    try:
        package = importlib.import_module("pygraphviz")
        library = importlib.import_module("pygraphviz.graphviz")
    except Exception as error:
        send(channel, json.dumps({"error": "import", "why": str(error)}).encode())
        return
    send(channel, json.dumps({"error": ""}).encode())
    while True:
        _end_after(float(idle_seconds), void)
        job = json.loads(receive(channel))
        _end_after(float(seconds), void)
        wrong, content = answer(job, package, library)
        send(channel, json.dumps({"error": wrong}).encode())
        send(channel, content)


def _take_streams() -> tuple[socket.socket, int]:
    """The socket to the parent, and a file that takes what Graphviz and Fontconfig print."""
    if sys.platform == "win32":  # sockets are handed over in another way there
        channel = socket.fromshare(sys.stdin.buffer.read())
    else:
        channel = socket.socket(fileno=os.dup(0))
    void = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(void, standard)
    return channel, void


def _end_after(seconds: float, void: int) -> None:
    """Let a timer end this process, which needs no interpreter for it: Graphviz holds that while it works.

    So a picture without end is ended even where the parent was killed meanwhile.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=void)


def _limit_resources() -> None:
    """Limit the memory, and leave no core file in a person's folder after a crash."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_AS, MEMORY_BYTES)):
        hard = resource.getrlimit(limit)[1]
        lowest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):  # macOS refuses some
            resource.setrlimit(limit, (lowest, hard))


def answer(job: Mapping[str, Any], package: Any, library: Any) -> tuple[str, bytes]:
    """What is wrong with a job, ``""`` for nothing; and the picture, or a sentence about what is wrong."""
    with suppress(OSError):  # a folder can be one that nobody can enter again; it matters to images in a graph only
        os.chdir(job["folder"].encode("latin-1"))
    try:
        return draw(job, package, library)
    except Exception as error:  # a full disk, for one; it says nothing about the graph
        return "system", f"{type(error).__name__}: {error}".encode(errors="replace")
    finally:
        os.chdir(os.sep)  # nobody should find their folder in use


def draw(job: Mapping[str, Any], package: Any, library: Any) -> tuple[str, bytes]:
    """Draw a picture, and return what ``answer`` returns.

    The layout is never freed: ``gvFreeLayout`` crashes on some graphs. The parent replaces the process now and then.
    """
    try:
        drawing = package.AGraph(string=job["source"])
    except (ValueError, LookupError) as error:
        return "read", str(error).encode(errors="replace")
    if job["drop_invisible_edges"]:
        _drop_invisible_edges(drawing.handle, library)
    for name, value in job["attributes"].items():
        _set(drawing, library, name, value)
    if job["note"]:
        _set(drawing, library, "label", _with_note(drawing, library, job["note"]))
    context = library.gvContextWithBuiltins()
    if library.gvLayout(context, drawing.handle, job["engine"].encode()):
        return "engine", b""
    failed, picture = library.gvRenderData(context, drawing.handle, job["format"].encode())
    return ("format", b"") if failed else ("", picture)


def _set(drawing: Any, library: Any, name: str, value: str) -> None:
    """Set an attribute of the graph alone: its clusters would inherit what ``graph_attr`` sets."""
    encoded = value.encode(drawing.encoding, errors="replace")
    library.agsafeset_label(drawing.handle, drawing.handle, name.encode(), encoded, b"")


def _with_note(drawing: Any, library: Any, note: str) -> str:
    """The label of the graph with ``note`` in lines below it."""
    label = (library.agget(drawing.handle, b"label") or b"").decode(drawing.encoding, errors="replace")
    if f"label=<{label}>" in drawing.to_string():  # it is markup
        lines = escape(note).replace("\n", "<BR/>")
        return f'<<TABLE BORDER="0"><TR><TD>{label}</TD></TR><TR><TD>{lines}</TD></TR></TABLE>>'
    return "\\n".join(filter(None, (label, *note.splitlines())))


def _drop_invisible_edges(graph: Any, library: Any) -> None:
    edges = []
    for node in _walk(lambda: library.agfstnode(graph), lambda last: library.agnxtnode(graph, last)):
        edges += _walk(lambda: library.agfstout(graph, node), lambda last: library.agnxtout(graph, last))  # noqa: B023
    for edge in edges:
        if library.agget(edge, b"style") == b"invis":
            library.agdeledge(graph, edge)


def _walk(first: Callable[[], Any], following: Callable[[Any], Any]) -> list[Any]:
    """What the library hands out one by one."""
    found = []
    with suppress(StopIteration):
        at = first()
        while at is not None:
            found.append(at)
            at = following(at)
    return found


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    finally:
        os._exit(0)  # without freeing anything: that may crash
