"""A page into a file: all of it or nothing."""

import os
from pathlib import Path

from hookviz.words import say


def write(page: str, path: str | Path) -> None:
    """Write ``page`` to ``path``; a file that is there stays as it is if anything fails.

    Raises:
        OSError: the file cannot be written; the message says why.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():  # a folder fails here; a device must not be replaced by a file
            target.write_text(page, encoding="utf-8", newline="\n")
        else:
            _replace(target.resolve(), page)
    except OSError as error:
        raise type(error)(say("error.page.write", path=path, why=error.strerror)) from None


def _replace(target: Path, page: str) -> None:
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_text(page, encoding="utf-8", newline="\n")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
