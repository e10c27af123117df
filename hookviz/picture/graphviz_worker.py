"""Graphviz in a process of its own: the library can crash, and a crash must not take a notebook along.

``graphviz_client`` starts this file by its path. It reads jobs from its standard input and writes pictures to its
standard output. It imports neither torch nor hookviz, so it starts in a twentieth of a second.
"""

import faulthandler
import importlib
import json
import os
import signal
import struct
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

IDLE_SECONDS = 600.0
"""Without a job for so long the worker ends; the next picture starts another."""
MEMORY_BYTES = 2 * 1024**3
"""Address space that the worker may use, where the system lets a process limit itself (not on Windows, nor macOS)."""

_LENGTH = struct.Struct("!Q")


def write_frame(stream: BinaryIO, content: bytes) -> None:
    """Write ``content`` with its length before it; ``stream`` may be unbuffered, and take less than it is given."""
    rest = memoryview(_LENGTH.pack(len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) or 0 :]


def read_frame(stream: BinaryIO) -> bytes | None:
    """What ``write_frame`` wrote on the other side; None where that side is gone."""
    head = _read_exactly(stream, _LENGTH.size)
    return None if head is None else _read_exactly(stream, *_LENGTH.unpack(head))


def _read_exactly(stream: BinaryIO, count: int) -> bytes | None:
    parts = []
    while count:
        part = stream.read(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def main(package_folder: str, seconds: str) -> None:
    """Answer jobs until nobody is there to ask.

    Args:
        package_folder: where the parent process finds pygraphviz.
        seconds: what takes longer, loading Graphviz or one picture, ends this process.
    """
    jobs, answers, void = _take_streams()
    _end_after(float(seconds), void)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal reaches this process, too; the parent decides
    _limit_resources()
    sys.path.append(package_folder)
    try:
        package = importlib.import_module("pygraphviz")
        library = importlib.import_module("pygraphviz.graphviz")
    except Exception as error:
        write_frame(answers, json.dumps({"error": "import", "why": str(error)}).encode())
        return
    write_frame(answers, json.dumps({"error": ""}).encode())
    while True:
        _end_after(IDLE_SECONDS, void)
        job = read_frame(jobs)
        if job is None:
            return
        _end_after(float(seconds), void)
        wrong, content = draw(json.loads(job), package, library)
        write_frame(answers, json.dumps({"error": wrong}).encode())
        write_frame(answers, content)


def _take_streams() -> tuple[BinaryIO, BinaryIO, int]:
    """The pipes to the parent; what Graphviz and Fontconfig print then goes nowhere."""
    jobs, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    void = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(void, standard)
    return jobs, answers, void


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
        try:
            resource.setrlimit(limit, (lowest, hard))
        except (ValueError, OSError):  # macOS refuses some
            continue


def draw(job: Mapping[str, Any], package: Any, library: Any) -> tuple[str, bytes]:
    """Draw a picture: what is wrong with the job (``""`` for nothing), and the picture, or what Graphviz said.

    The layout is never freed: ``gvFreeLayout`` crashes on some graphs. The parent replaces the process now and then.
    """
    if job["folder"]:  # pictures in a graph may have relative paths
        os.chdir(job["folder"])
    try:
        drawing = package.AGraph(string=job["source"])
    except Exception as error:
        return "read", str(error).encode()
    simplify(drawing, library, job)
    context = library.gvContextWithBuiltins()
    if library.gvLayout(context, drawing.handle, job["engine"].encode()):
        return "engine", b""
    failed, picture = library.gvRenderData(context, drawing.handle, job["format"].encode())
    return ("format", b"") if failed else ("", picture)


def simplify(drawing: Any, library: Any, job: Mapping[str, Any]) -> None:
    """Change the graph as the job says: set ``attributes``, drop invisible edges, write ``note`` below the picture."""
    if job["drop_invisible_edges"]:
        _drop_invisible_edges(drawing, library)
    attributes = dict(job["attributes"])
    label = (library.agget(drawing.handle, b"label") or b"").decode()
    if job["note"] and not label.startswith("<"):  # nothing can be added to markup
        attributes["label"] = "\\n".join(filter(None, (label, job["note"])))
    for name, value in attributes.items():
        # Of the graph alone: its clusters would inherit what ``graph_attr`` sets.
        library.agsafeset_label(drawing.handle, drawing.handle, name.encode(), value.encode(), b"")


def _drop_invisible_edges(drawing: Any, library: Any) -> None:
    for tail, head, key in list(drawing.edges_iter(keys=True)):
        edge = drawing.get_edge(tail, head, key)
        if edge.attr["style"] == "invis":
            library.agdeledge(drawing.handle, edge.handle)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    finally:
        os._exit(0)  # without freeing anything: that may crash
