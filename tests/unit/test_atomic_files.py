"""Atomic writes: a file is written completely or not at all, and its folder does not change otherwise."""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from scenes import recorded

from hookviz.support.atomic_files import write_atomically

LONG_NAME = "n" * 250
TRACE = recorded()
WRITERS: dict[str, Callable[[Path], Any]] = {
    "save": TRACE.save,
    "to_html": TRACE.to_html,
    "figure": lambda path: TRACE.figure(3).render(path, format=path.suffix[1:] or "json"),
}


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


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Set the umask of this process in the block."""
    old_mask = os.umask(mask)
    try:
        yield
    finally:
        os.umask(old_mask)


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.parametrize("suffix", [".json", ".html", ".svg", ".png"])
@pytest.mark.parametrize("old_text", ["as it was", None], ids=["over a file", "new"])
def test_a_full_disk_leaves_the_old_file_intact(suffix: str, old_text: str | None, tmp_path: Path) -> None:
    write = WRITERS[{".json": "save", ".html": "to_html"}.get(suffix, "figure")]
    write(tmp_path.with_suffix(suffix))  # start the Graphviz worker now: it keeps the limits it started with
    path = tmp_path / f"file{suffix}"
    if old_text is not None:
        path.write_text(old_text)
    with disk_full(1_000), pytest.raises(OSError, match=r"file\.\w+ cannot be written: File too large\."):
        write(path)
    assert [file.read_text() for file in tmp_path.iterdir()] == ([] if old_text is None else [old_text])
    write(path)
    assert path.stat().st_size > 1_000


@pytest.mark.parametrize("writer_name", WRITERS)
def test_a_file_name_may_have_the_maximum_length(writer_name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{LONG_NAME}.svg"
    WRITERS[writer_name](path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_an_old_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: Path) -> None:
    for old_mode in (0o600, 0o664, 0o755):
        path = tmp_path / oct(old_mode)
        path.touch()
        path.chmod(old_mode)
        with umask(0o077):
            write_atomically("text", path)
        assert (mode(path), path.read_text()) == (oct(old_mode), "text")
    for mask, expected in ((0o022, "0o644"), (0o077, "0o600"), (0o002, "0o664")):
        with umask(mask):
            write_atomically("text", tmp_path / expected)
        assert mode(tmp_path / expected) == expected


def test_writing_through_a_symlink_replaces_its_target(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link, file = tmp_path / "link", tmp_path / "folder" / "file"
    link.symlink_to(file)
    for text in ("new", "again"):
        write_atomically(text, link)
        assert (link.readlink(), file.read_text()) == (file, text)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "link"]


def test_a_symlink_planted_under_the_temporary_name_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("theirs")
    monkeypatch.setattr(secrets, "token_hex", lambda count: "known")
    monkeypatch.setattr(os, "getpid", lambda: 7)
    for name in (".hookviz-known", ".file.7.part"):
        (tmp_path / name).symlink_to(secret)
    with pytest.raises(FileExistsError, match="file cannot be written: File exists"):
        write_atomically("ours", tmp_path / "file")
    assert secret.read_text() == "theirs"
    assert {path.name for path in tmp_path.iterdir()} == {"secret", ".hookviz-known", ".file.7.part"}


def test_each_write_uses_a_new_temporary_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda part, target: (names.append(Path(part).name), replace(part, target)))
    for _ in range(2):
        write_atomically("text", tmp_path / "file")
    assert len(set(names)) == 2


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("as it was")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write to every file
    with pytest.raises(PermissionError, match="file cannot be written: Permission denied"):
        write_atomically("text", path)
    assert path.read_text() == "as it was"


def test_the_error_names_a_folder_that_allows_no_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_text("as it was")

    def refuse(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match=rf"the folder {tmp_path} does not allow new files.* Choose another"):
        write_atomically("text", path)
    assert path.read_text() == "as it was"


def test_writing_to_a_device_does_not_replace_it() -> None:
    write_atomically("text", os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    if os.path.exists("/dev/full"):
        with pytest.raises(OSError, match="/dev/full cannot be written: No space left on device"):
            write_atomically("text", "/dev/full")


def test_a_file_name_that_is_too_long_raises_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long"):
        write_atomically("text", tmp_path / (LONG_NAME * 2))


@pytest.mark.parametrize("name", ["a\0b", "a\0b/c"])
@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_path_with_a_null_character_is_refused(write: Callable[[Path], Any], name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a�b.* is not the path of a file: it contains a null character"):
        write(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
