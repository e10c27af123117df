"""A page into a file: all of it or nothing."""

from pathlib import Path

from hookviz.whole import write_whole
from hookviz.words import say


def write(page: str, path: str | Path) -> None:
    """Write ``page`` to ``path``; a file that is there stays as it is if anything fails.

    Raises:
        OSError: the file cannot be written; the message says why.
    """
    try:
        write_whole(page, path)
    except OSError as error:
        raise type(error)(say("error.page.write", path=path, why=error.strerror)) from None
