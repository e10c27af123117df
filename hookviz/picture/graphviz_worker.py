"""The process that runs Graphviz: the library can crash, and a crash must not end the notebook's process.

``graphviz_client`` starts this file by its path and talks to it through a socket: it sends a job and gets a picture.
The file imports neither torch nor hookviz. Every first picture waits for its start: modules that only some jobs need
are imported where they are used.
"""

import faulthandler
import marshal
import os
import struct
import sys
from collections.abc import Callable
from typing import Any, Protocol

MEMORY_BYTES = 2 * 1024**3
"""Address space that the worker may use, if the system lets a process limit itself (Windows and macOS do not)."""

_LENGTH = struct.Struct("!Q")


class Channel(Protocol):
    """The socket between the two processes."""

    def recv(self, count: int, /) -> bytes:
        """Receive at most ``count`` bytes; none if the other side is gone."""

    def sendall(self, content: bytes, flags: int, /) -> None:
        """Send all of ``content``."""


def send(channel: Channel, content: Any, flags: int = 0) -> None:
    """Send plain data: numbers, texts, bytes, and containers of them.

    Raises:
        OSError: the other side is gone, or did not accept the data in time.
    """
    packed = marshal.dumps(content)
    channel.sendall(_LENGTH.pack(len(packed)) + packed, flags)


def receive(channel: Channel) -> Any:
    """Receive the data that the other side has sent with ``send``.

    Raises:
        OSError: the other side is gone, or sent nothing in time.
    """
    return marshal.loads(_receive_exactly(channel, *_LENGTH.unpack(_receive_exactly(channel, _LENGTH.size))))


def _receive_exactly(channel: Channel, count: int) -> bytes:
    parts = []
    while count:
        part = channel.recv(min(count, 1 << 20))
        if not part:
            raise ConnectionError("the other side is gone")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


class _DescriptorChannel:
    """A socket given by its descriptor, without the module ``socket``, which takes long to load."""

    def __init__(self, number: int) -> None:
        self.number = number

    def recv(self, count: int, /) -> bytes:
        return os.read(self.number, count)

    def sendall(self, content: bytes, flags: int, /) -> None:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self.number, rest) :]


def main(package_folder: str, seconds: str, idle_seconds: str) -> None:
    """Answer jobs until the parent process is gone.

    Args:
        package_folder: the folder in which the parent process finds pygraphviz.
        seconds: this process ends if loading Graphviz or drawing one picture takes longer.
        idle_seconds: it also ends if it waits longer for a job.
    """
    channel, null_device = _take_streams()
    _end_after(float(seconds), null_device)
    _limit_resources()
    try:
        library = _load_library(package_folder)
    except Exception as error:
        send(channel, {"error": "import", "why": str(error)})
        return
    send(channel, {"error": ""})
    while True:
        _end_after(float(idle_seconds), null_device)
        job = receive(channel)
        _end_after(float(seconds), null_device)
        send(channel, answer_job(job, library))


def _take_streams() -> tuple[Channel, int]:
    """Return the socket to the parent, and a file for everything that Graphviz and Fontconfig print."""
    channel: Channel
    if sys.platform == "win32":  # the parent writes the socket's description to standard input there
        import socket

        channel = socket.fromshare(sys.stdin.buffer.read())
    else:
        channel = _DescriptorChannel(os.dup(0))
    null_device = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null_device, standard)
    return channel, null_device


def _end_after(seconds: float, null_device: int) -> None:
    """End this process after ``seconds``, by a timer that runs without the interpreter, which Graphviz blocks.

    So an endless layout ends even if the parent was killed meanwhile.
    """
    faulthandler.dump_traceback_later(seconds, exit=True, file=null_device)


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
        os.chdir(job["folder"].encode("latin-1"))
    except OSError:  # the folder cannot be entered; only images in a graph need it
        os.chdir(os.sep)
    try:
        return draw_job(job, library)
    except Exception as error:  # such as a lack of memory, which says nothing about the graph
        return "system", f"{type(error).__name__}: {error}".encode(errors="replace")
    finally:
        os.chdir(os.sep)  # so that the user's folder is not in use and can be removed


def draw_job(job: dict[str, Any], library: Any) -> tuple[str, bytes]:
    """Draw a job, and return what ``answer_job`` returns.

    The layout is never freed, since ``gvFreeLayout`` crashes on some graphs; the parent replaces this process now and
    then.
    """
    try:
        encoding = _find_encoding(job["source"])
        source = job["source"].encode(encoding)
    except (UnicodeError, LookupError) as error:
        return "read", str(error).encode(errors="replace")
    try:
        graph = _read_graph(source, library)
    except ValueError:
        return "read", b"its DOT is not valid"
    if job["drop_invisible_edges"]:
        _drop_invisible_edges(graph, library)
    for name, value in job["attributes"].items():
        _set_attribute(graph, library, name, value.encode())
    if job["note"]:
        _set_attribute(
            graph, library, "label", _add_note_to_label(graph, library, job["note"].encode(encoding, errors="replace"))
        )
    context = library.gvContextWithBuiltins()
    if library.gvLayout(context, graph, job["engine"].encode()):
        return "engine", b""
    failed, picture = library.gvRenderData(context, graph, job["format"].encode())
    return ("format", b"") if failed else ("", picture)


def _find_encoding(source: str) -> str:
    """Return the encoding with which Graphviz will read ``source``: its ``charset``, or UTF-8."""
    if "charset" not in source:
        return "utf-8"
    import re

    match = re.search(r'charset\s*=\s*"([^"]+)"', source)
    return match[1] if match else "utf-8"


def _read_graph(source: bytes, library: Any) -> Any:
    with _open_file() as file:
        file.write(source)
        file.seek(0)
        return library.agread(file, None)


def _open_file() -> Any:
    """Open a file for the library, which can only read and write files; it is in memory if the system supports that."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("graph"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _set_attribute(graph: Any, library: Any, name: str, value: bytes) -> None:
    """Set an attribute of the graph only, so that its clusters do not inherit it."""
    library.agsafeset_label(graph, graph, name.encode(), value, b"")


def _add_note_to_label(graph: Any, library: Any, note: bytes) -> bytes:
    """Return the label of the graph with the lines of ``note`` below it."""
    label = library.agget(graph, b"label") or b""
    if b"<" in label and _is_markup(graph, library, label):
        lines = note.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b"\n", b"<BR/>")
        return b'<<TABLE BORDER="0"><TR><TD>' + label + b"</TD></TR><TR><TD>" + lines + b"</TD></TR></TABLE>>"
    return b"\\n".join(filter(None, (label, *note.split(b"\n"))))


def _is_markup(graph: Any, library: Any, label: bytes) -> bool:
    """Whether a label is markup, between ``<`` and ``>`` rather than quotes; only the written graph shows that."""
    with _open_file() as file:
        library.agwrite(graph, file)
        file.seek(0)
        return b"label=<" + label + b">" in file.read()


def _drop_invisible_edges(graph: Any, library: Any) -> None:
    edges = []
    for node in _collect_items(lambda: library.agfstnode(graph), lambda last: library.agnxtnode(graph, last)):
        edges += _collect_items(lambda: library.agfstout(graph, node), lambda last: library.agnxtout(graph, last))  # noqa: B023
    for edge in edges:
        if library.agget(edge, b"style") == b"invis":
            library.agdeledge(graph, edge)


def _collect_items(first_item: Callable[[], Any], next_item: Callable[[Any], Any]) -> list[Any]:
    """Collect the items that the library returns one by one."""
    items = []
    try:
        item = first_item()
        while item is not None:
            items.append(item)
            item = next_item(item)
    except StopIteration:
        pass
    return items


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    finally:
        os._exit(0)  # without freeing anything: that may crash
