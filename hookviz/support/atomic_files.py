"""Files that are written wholly or not at all."""

import errno
import os
import secrets
import stat
from contextlib import suppress
from os import PathLike
from pathlib import Path

from hookviz.support.interrupts import Uninterrupted
from hookviz.support.messages import say
from hookviz.support.printable import kind_of, printable

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
"""Opens a file that must not be there yet, not even as a link; on Windows, without changing line ends."""


def write_atomically(content: str | bytes, path: str | Path) -> None:
    """Write ``content`` to ``path``; a file that is there stays as it is if anything fails or interrupts.

    The content goes into a new file in the same folder, under a random name, which then takes the place of ``path``.
    So the folder must allow new files, even where ``path`` can be overwritten. The file keeps its mode (a new one gets
    what the umask allows) and, where the system permits, its owner; another hard link to it keeps the old content.
    On Windows a new file has the mode that every new one has.
    Where ``path`` is a symbolic link, the link stays and the file it leads to is replaced. What is no file, such as a
    device or a pipe, is written to directly.

    Raises:
        OSError: the file cannot be written; the message says why.
        TypeError: ``path`` is no path.
        ValueError: ``path`` contains a null character.
    """
    target = path_of(path)
    data = content.encode() if isinstance(content, str) else content
    try:
        there = _stat(target)
        if there is not None and not stat.S_ISREG(there.st_mode):
            target.write_bytes(data)  # a folder fails here
        else:
            _replace(Path(os.path.realpath(target)), data, there)
    except _NoNewFilesError as error:
        raise PermissionError(say("error.write.folder", path=path, folder=error.folder)) from None
    except OSError as error:
        raise type(error)(say("error.write", path=path, why=error.strerror or error)) from None


def path_of(path: object) -> Path:
    """``path`` as a path.

    Raises:
        TypeError: it is something else.
        ValueError: it contains a null character, which no system allows.
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(say("error.path", kind=kind_of(path)))
    place = Path(path)
    if "\0" in str(place):
        raise ValueError(say("error.path.null", path=printable(str(place))))
    return place


def _stat(target: Path) -> os.stat_result | None:
    """What the system knows of the file at ``target``, or behind the link there; None where there is none."""
    try:
        return target.stat()
    except FileNotFoundError:
        return None


def _replace(target: Path, data: bytes, there: os.stat_result | None) -> None:
    """Put a new file in the place of ``target``, of which the system knows what is ``there``."""
    if there is not None and not os.access(target, os.W_OK):  # the folder would allow it
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    # The target's name may be as long as the system allows; this one is short, and nobody can guess it.
    part = target.with_name(f".hookviz-{secrets.token_hex(8)}")
    descriptor = None
    # No interrupt comes before a function in C has run: with ``os.close`` and ``os.unlink`` nothing stays behind.
    try:
        try:
            with Uninterrupted():
                descriptor = _create(part, there)
            _fill(descriptor, data, there)
        finally:
            if descriptor is not None:
                os.close(descriptor)
        os.replace(part, target)
    except BaseException:
        if descriptor is not None:
            try:  # noqa: SIM105 - to make ``suppress`` would leave time for an interrupt
                os.unlink(part)
            except FileNotFoundError:  # it has taken its place
                pass
        raise


def _create(part: Path, there: os.stat_result | None) -> int:
    """The descriptor of a new file, which from the start nobody may read who may not read the old one."""
    try:
        return os.open(part, _NEW, 0o666 if there is None else there.st_mode & 0o666)
    except PermissionError:
        raise _NoNewFilesError(part.parent) from None


def _fill(descriptor: int, data: bytes, there: os.stat_result | None) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    if there is not None and hasattr(os, "fchmod"):
        with suppress(PermissionError):  # only root may give a file away
            os.fchown(descriptor, there.st_uid, there.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(there.st_mode))
    os.fsync(descriptor)  # else a crash of the system soon after could leave an empty file


class _NoNewFilesError(Exception):
    """A folder does not allow new files."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder
