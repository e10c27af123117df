"""Atomic writes: a file is written completely or not at all, and its folder does not change otherwise."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scenes import recorded

from hookviz.support.atomic_files import write_atomically


@contextmanager
def disk_full(max_bytes: int) -> Iterator[None]:
    """Limit the size of every file to ``max_bytes``."""
    resource = pytest.importorskip("resource", reason="Windows has no such module")
    old_limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, old_limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limits)


def test_a_full_disk_leaves_the_old_file_intact(tmp_path: Path) -> None:
    trace, path = recorded(), tmp_path / "pass.json"
    path.write_text("as it was")
    with disk_full(1_000), pytest.raises(OSError, match=r"pass\.json cannot be written: File too large\."):
        trace.save(path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ["as it was"]
    trace.save(path)
    assert path.stat().st_size > 1_000


def test_writing_through_a_symlink_replaces_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, file = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(file)
    for text in ("new", "again"):
        write_atomically(text, link)
        assert (link.readlink(), file.read_text()) == (file, text)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "link"]


def test_writing_to_a_device_does_not_replace_it() -> None:
    write_atomically("text", os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
