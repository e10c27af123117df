"""``report`` writes the scores of a session into a file, and keeps what was written before."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookviz.course import Verdict, answer_log, check, report
from hookviz.course.answer_log import MAX_ANSWER


@pytest.fixture(autouse=True)
def new_session() -> Iterator[None]:
    """Begin without verdicts, as a new kernel does."""
    restart()
    yield
    restart()


def restart() -> None:
    answer_log._attempts.clear()
    answer_log._merged.clear()
    answer_log._tests.clear()


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def test_a_verdict_has_a_score() -> None:
    assert (check("02.1", 10).score, check("02.1", 8).score) == (1, 0)
    assert check("07.1", 0.0156).score == 0.5, "rounded, where all digits are asked for"
    assert Verdict("1", True, "").score == 1 and Verdict("1", False, "", credit=0.25).score == 0.25


def test_the_file_has_the_best_score_the_tries_and_two_answers(tmp_path: Path) -> None:
    for answer in (8, 10, 7):
        check("02.1", answer)
    check("02.8", lambda grad: grad * 3)
    written = report(tmp_path / "answers.json")
    assert written.exercises["02.1"] == read(written.path)["exercises"]["02.1"]
    record = written.exercises["02.1"]
    assert (record["score"], record["tries"], record["first_answer"], record["last_answer"]) == (1, 3, "8", "7")
    assert record["first_time"] <= record["last_time"] and record["first_time"].endswith("Z")
    assert written.exercises["02.8"]["first_answer"] == "lambda grad: grad * 3"
    assert repr(written).endswith("answers.json: 1 of 2 exercises are right, score 1 of 2.")


def test_nothing_personal_is_written_unless_given(tmp_path: Path) -> None:
    check("02.1", 8)
    path = report(tmp_path / "answers.json").path
    assert read(path)["name"] is None
    assert set(read(path)) == {"format", "version", "id", "name", "exercises"}
    assert str(tmp_path) not in path.read_text() and os.environ.get("USER", "?nobody") not in path.read_text()
    report(path, name="Student 17")
    assert read(report(path).path)["name"] == "Student 17"


def test_an_empty_answer_is_no_try(tmp_path: Path) -> None:
    check("02.1", None)
    check("02.1", ...)
    assert report(tmp_path / "answers.json").exercises == {}


def test_writing_twice_counts_each_try_once(tmp_path: Path) -> None:
    check("02.1", 8)
    report(tmp_path / "answers.json")
    check("02.1", 10)
    report(tmp_path / "answers.json")
    assert report(tmp_path / "answers.json").exercises["02.1"]["tries"] == 2


def test_after_a_restart_the_best_score_stays(tmp_path: Path) -> None:
    check("02.1", 10)
    report(tmp_path / "answers.json")
    restart()
    check("02.1", 8)
    check("03.1", 1)
    exercises = report(tmp_path / "answers.json").exercises
    record = exercises["02.1"]
    assert (record["score"], record["tries"], record["first_answer"], record["last_answer"]) == (1, 2, "10", "8")
    assert sorted(exercises) == ["02.1", "03.1"]


def test_two_kernels_may_write_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    check("02.1", 10)
    report(path)
    mine = (answer_log._attempts.copy(), answer_log._merged.copy())
    restart()
    check("03.1", 1)
    report(path)
    answer_log._attempts[:] = mine[0]
    answer_log._merged.update(mine[1])
    check("02.2", 24)
    assert {key: record["tries"] for key, record in report(path).exercises.items()} == {
        "02.1": 1,
        "02.2": 1,
        "03.1": 1,
    }


def test_a_file_that_was_deleted_is_written_anew_with_everything(tmp_path: Path) -> None:
    check("02.1", 10)
    path = report(tmp_path / "answers.json").path
    path.unlink()
    assert report(path).exercises["02.1"]["tries"] == 1
    check("02.1", 8)
    assert report(tmp_path / "other.json").exercises["02.1"]["tries"] == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b"{}",
        b"\xff",
        b'{"format": "hookviz-answers", "version": 1, "id": "a", "exercises": {"02.1": {"score": 2, "tries": 1}}}',
        b'{"format": "hookviz-answers", "version": 1, "id": "a", "exercises": []}',
    ],
)
def test_another_file_is_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "thesis.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"thesis\.json is not a file of answers"):
        report(path)
    assert path.read_bytes() == content


def test_a_failed_write_leaves_the_old_file_and_loses_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check("02.1", 10)
    path = report(tmp_path / "answers.json").path
    before = path.read_bytes()
    check("02.1", 8)

    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="disk full"):
            report(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    assert report(path).exercises["02.1"]["tries"] == 2


class Rude:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("answer", "text"), [(Rude(), "Rude"), ("x" * 5_000, "x" * MAX_ANSWER), (print, "<built-in function print>")]
)
def test_any_answer_becomes_text(answer: object, text: str, tmp_path: Path) -> None:
    check("02.1", answer)
    assert report(tmp_path / "answers.json").exercises["02.1"]["first_answer"] == text
