"""Load traces from files."""

from pathlib import Path

from hookviz.api.trace import Trace
from hookviz.storage.files import read_trace


def load(path: str | Path) -> Trace:
    """Load a trace from the file that ``Trace.save`` wrote to ``path``.

    The contents of the file are checked before the trace is built, and nothing in a file is ever run: a file from
    somebody else can do no harm. ``hookviz.storage.schema`` describes the format.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the file cannot be read, for example because it is a folder.
        TypeError: ``path`` is not a path.
        ValueError: the file does not hold a trace; or the trace is damaged or of a newer version; or the file is larger
            than 512 MB, or not a regular file. The message says which.

    >>> import tempfile, torch, hookviz as hv
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hv.record() as trace:
    ...     (x * x).backward()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trace.save(f"{folder}/pass.json")
    ...     loaded = hv.load(f"{folder}/pass.json")
    >>> loaded.steps[-1].sentence == trace.steps[-1].sentence
    True
    """
    return Trace(read_trace(path))
