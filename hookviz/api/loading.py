"""Traces read back from files."""

from pathlib import Path

from hookviz.api.trace import Trace
from hookviz.storage.files import read_trace


def load(path: str | Path) -> Trace:
    """The trace that ``Trace.save`` wrote to ``path``.

    What the file holds is checked before anything is made of it, so that a file which is not yours can do no harm:
    ``hookviz.storage.schema`` describes the format. Nothing in a file is ever run.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read: it is a folder, say.
        TypeError: ``path`` is no path.
        ValueError: the file is no trace, a damaged one, one of a newer version, or larger than 512 MB; or it is no
            ordinary file. The message says which.
    """
    return read_trace(path, Trace)
