"""A session of a student: what a kernel remembers, and where it writes the file of answers."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookviz.course import answer_log


@pytest.fixture
def new_kernel() -> Callable[[], None]:
    """Forget what a kernel forgets when it is restarted."""
    remembered: tuple[Any, ...] = (answer_log._attempts, answer_log._merged, answer_log._tests)

    def forget() -> None:
        for part in remembered:
            part.clear()

    return forget


@pytest.fixture
def new_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new_kernel: Callable[[], None]) -> Iterator[Path]:
    """Begin without hints, tries and verdicts, as a new kernel does in an empty folder; return the folder."""
    monkeypatch.chdir(tmp_path)
    new_kernel()
    yield tmp_path
    new_kernel()
