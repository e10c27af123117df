"""Write files atomically: completely, or not at all."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path

from hookviz.support.interrupts import Uninterrupted
from hookviz.support.messages import say
from hookviz.support.printable import describe_type, make_printable

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Flags to create a file that must not exist, not even as a link; on Windows without translating line ends."""


def write_atomically(content: str | bytes, path: str | Path) -> None:
    """Write ``content`` to ``path``; if that fails or is interrupted, an existing file keeps its old content.

    The content is written to a new file with a random name in the same folder, which then replaces ``path``. So the
    folder must allow new files, even if ``path`` itself can be overwritten. An existing file keeps its mode and, if the
    system permits, its owner; a new file gets the mode that the umask allows. On Windows the file always gets the
    default mode. Other hard links to the file keep the old content. If ``path`` is a symbolic link, its target is
    replaced. Devices and pipes are written to directly.

    Raises:
        OSError: the file cannot be written; the message says why.
        TypeError: ``path`` is not a path.
        ValueError: ``path`` contains a null character.
    """
    target = to_path(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        status = _stat_if_exists(target)
        if status is not None and not stat.S_ISREG(status.st_mode):
            target.write_bytes(data)  # raises an OSError for a folder
        else:
            _replace_file(Path(os.path.realpath(target)), data, status)
    except _NoNewFilesError as error:
        raise PermissionError(say("error.write.folder", path=path, folder=error.folder)) from None
    except OSError as error:
        raise type(error)(say("error.write", path=path, why=error.strerror or error)) from None


def to_path(path: object) -> Path:
    """Convert ``path`` to a ``Path``.

    Raises:
        TypeError: ``path`` is neither a string nor path-like.
        ValueError: ``path`` contains a null character, which no system allows.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(say("error.path", kind=describe_type(path)))
    result = Path(path)
    if "\0" in str(result):
        raise ValueError(say("error.path.null", path=make_printable(str(result))))
    return result


def _stat_if_exists(target: Path) -> os.stat_result | None:
    """Return the status of ``target``, following a link; None if the file does not exist."""
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _replace_file(target: Path, data: bytes, status: os.stat_result | None) -> None:
    """Replace ``target`` by a new file; ``status`` is that of the old file, None if there is none."""
    if status is not None and not os.access(target, os.W_OK):  # else a read-only file would be replaced
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # Short, since the name of the target may already be as long as the system allows; random, so nobody can guess it.
    temporary = target.with_name(f".hookviz-{secrets.token_hex(8)}")
    descriptor = None
    # Python handles an interrupt only after a C function has returned: ``os.close`` and ``os.unlink`` always happen.
    try:
        try:
            with Uninterrupted():
                descriptor = _create_file(temporary, status)
            _fill_file(descriptor, data, status)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        os.replace(temporary, target)
    except BaseException:
        if descriptor is not None:
            try:  # noqa: SIM105 - an interrupt could come while ``suppress`` is created
                os.unlink(temporary)
            except FileNotFoundError:  # it has already replaced the target
                pass
        raise


def _create_file(temporary: Path, status: os.stat_result | None) -> int:
    """Create a file and return its descriptor; from the start it has no more permissions than the old file."""
    try:
        return os.open(temporary, _CREATE_FLAGS, 0o666 if status is None else status.st_mode & 0o666)
    except PermissionError:
        raise _NoNewFilesError(temporary.parent) from None


def _fill_file(descriptor: int, data: bytes, status: os.stat_result | None) -> None:
    """Write ``data`` to ``descriptor``, and give the file the mode and owner of the old one."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]
    if status is not None and hasattr(os, "fchmod"):
        with suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    os.fsync(descriptor)  # a system crash soon after could otherwise leave an empty file


class _NoNewFilesError(Exception):
    """A folder does not allow new files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
