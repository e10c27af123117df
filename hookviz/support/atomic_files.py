"""Write files atomically: completely, or not at all."""

import os
import secrets
from os import PathLike
from pathlib import Path

from hookviz.support.interpreter import Uninterrupted
from hookviz.support.messages import _
from hookviz.support.printable import describe_type, make_printable


def write_atomically(content: str | bytes, path: str | Path) -> None:
    """Write ``content`` to ``path``; if that fails, an existing file keeps its old content. Ctrl-C waits for the end.

    The content is written to a new file with a random name in the same folder, which then replaces ``path``, or the
    target of a symbolic link. Devices and pipes are written to directly.

    Raises:
        OSError: the file cannot be written; the message says why.
        TypeError: ``path`` is not a path.
        ValueError: ``path`` contains a null character.
    """
    target = to_path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # raises an OSError for a folder
        else:
            _replace_file(Path(os.path.realpath(target)), data)
    except OSError as error:
        raise type(error)(
            _("{path} cannot be written: {why}.").format(path=path, why=error.strerror or error)
        ) from None


def to_path(path: object) -> Path:
    """Convert ``path`` to a ``Path``.

    Raises:
        TypeError: ``path`` is neither a string nor path-like.
        ValueError: ``path`` contains a null character, which no system allows.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(
            _('A path is a string such as "pass.json", or a pathlib.Path; this is {kind}.').format(
                kind=describe_type(path)
            )
        )
    result = Path(path)
    if "\0" in str(result):
        raise ValueError(
            _("{path} is not the path of a file: it contains a null character.").format(
                path=make_printable(str(result))
            )
        )
    return result


def _replace_file(target: Path, data: bytes) -> None:
    # Short, since the name of the target may already be as long as the system allows.
    temporary = target.with_name(f".hookviz-{secrets.token_hex(8)}")
    with Uninterrupted():
        try:
            temporary.write_bytes(data)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
