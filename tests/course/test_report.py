"""``report`` writes the scores of a session into a file, and keeps what was written before."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hookviz.course import Verdict, check, report


@pytest.fixture
def path(new_session: Path) -> Path:
    """A file of answers that is not there yet, at the beginning of a session without verdicts."""
    return new_session / "answers.json"


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def count_tries(path: Path) -> dict[str, int]:
    """Report, and return how many tries the file has of each exercise."""
    return {exercise: record["tries"] for exercise, record in report(path).exercises.items()}


def test_a_verdict_has_a_score() -> None:
    assert (check("02.1", 10).score, check("02.1", 8).score) == (1, 0)
    assert Verdict("1", True, "").score == 1 and Verdict("1", False, "", credit=0.25).score == 0.25


def test_the_file_has_the_best_score_the_tries_and_two_answers(path: Path) -> None:
    for answer in (None, 8, 10, ..., 7):
        check("02.1", answer)
    check("02.8", lambda grad: grad * 3)
    written = report(path)
    assert written.exercises["02.1"] == read(written.path)["exercises"]["02.1"]
    record = written.exercises["02.1"]
    assert (record["score"], record["tries"], record["first_answer"], record["last_answer"]) == (1, 3, "8", "7")
    assert record["first_time"] <= record["last_time"] and record["first_time"].endswith("Z")
    assert written.exercises["02.8"]["first_answer"] == "lambda grad: grad * 3"
    assert repr(written).endswith("answers.json: 1 of 2 exercises are right, score 1 of 2.")


def test_nothing_personal_is_written_unless_given(path: Path) -> None:
    check("02.1", 8)
    assert set(read(report(path).path)) == {"format", "version", "id", "name", "exercises"}
    assert read(path)["name"] is None
    assert str(path.parent) not in path.read_text() and os.environ.get("USER", "?nobody") not in path.read_text()
    report(path, name="Student 17")
    assert read(report(path).path)["name"] == "Student 17"


def test_writing_twice_counts_each_try_once_and_after_a_restart_the_best_score_stays(
    path: Path, new_kernel: Callable[[], None]
) -> None:
    check("02.1", 10)
    assert count_tries(path) == {"02.1": 1}
    new_kernel()
    check("02.1", 8)
    check("03.1", 1)
    assert count_tries(path) == count_tries(path) == {"02.1": 2, "03.1": 1}
    record = report(path).exercises["02.1"]
    assert (record["score"], record["first_answer"], record["last_answer"]) == (1, "10", "8")


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b'{"format": "hookviz-answers", "version": 1, "id": "a", "exercises": {"02.1": {"score": 2}}}',
    ],
)
def test_another_file_is_left_as_it_is(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"answers\.json is not a file of answers"):
        report(path)
    assert path.read_bytes() == content
