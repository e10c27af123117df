"""Collect the verdicts of a session, and write them into a file of answers, merged with what it already holds."""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from hookviz.course.verdict import Verdict
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import _
from hookviz.support.source_code import describe_function

FORMAT, VERSION = "hookviz-answers", 1
MAX_ANSWER = 2_000
"""Characters of an answer that are kept."""
QUESTIONS = 15
"""How many questions a form of the concept test has."""
FORMS, MOMENTS = ("A", "B"), ("before", "after")
Record = dict[str, Any]
"""What is known of one exercise: ``score``, ``tries``, the first and the last answer with their times."""


class Attempt(NamedTuple):
    """A verdict of this session, with its answer as text and the time."""

    verdict: Verdict
    answer: str
    moment: str


_attempts: list[Attempt] = []
"""The attempts of this session."""
_tests: dict[str, Record] = {}
"""Form and moment of a concept test → the answers and their time."""
_merged: dict[str, int] = {}
"""Id of a file of answers → how many of the attempts were merged into it."""


@dataclass(frozen=True)
class AnswerFile:
    """What ``report`` wrote: the file, and its record of each exercise."""

    path: Path
    """The file."""
    exercises: Mapping[str, Record]
    """Number of an exercise → its ``score``, its ``tries``, and the first and the last answer with their times."""

    @property
    def score(self) -> float:
        """The sum of the scores."""
        return float(sum(record["score"] for record in self.exercises.values()))

    def __repr__(self) -> str:
        right = sum(record.get("right", record["score"] == 1) for record in self.exercises.values())
        return _("{path}: {right} of {count} exercises are right, score {score} of {count}.").format(
            path=self.path, right=right, count=len(self.exercises), score=f"{self.score:g}"
        )


def log_attempt(verdict: Verdict, answer: Any, *, most: int = MAX_ANSWER) -> None:
    """Remember a verdict of this session, with the answer as text of at most so many characters."""
    _attempts.append(Attempt(verdict, describe_answer(answer, most), _read_clock()))


def note_answers(form: str, moment: str, answers: str) -> None:
    """As ``hookviz.course.concept_test``; a second time replaces the first."""
    if form not in FORMS or moment not in MOMENTS:
        raise ValueError(
            _('The form is "A" or "B", and the moment "before" or "after", not {given}.').format(
                given=f'"{form}", "{moment}"'
            )
        )
    letters = [letter for letter in answers.upper() if not letter.isspace() and letter != ","]
    if len(letters) != QUESTIONS or not set(letters) <= set("ABCD-"):
        raise ValueError(
            _(
                "A form has {count} questions. Give a letter from A to D for each, in their order, and - for one that "
                "you leave open; these are {given}."
            ).format(count=QUESTIONS, given=len(letters))
        )
    _tests[f"{form} {moment}"] = {"answers": "".join(letters), "time": _read_clock()}
    print(_("Noted. What is right, you hear after the course. report(...) writes the answers into your file."))


def _read_clock() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def describe_answer(answer: Any, most: int = MAX_ANSWER) -> str:
    """Describe an answer as text: the source of a function, and what Python prints of anything else."""
    try:
        return (_source_text(answer) or str(answer))[:most]
    except Exception:  # the learner's object may raise anything when it is printed
        return type(answer).__name__


def _source_text(answer: Any) -> str | None:
    """Return the source text of a function, and of a lambda only its own; None if there is none."""
    if not callable(answer):
        return None
    source = describe_function(answer)
    return source.name if source.is_lambda else source.text


def write_report(path: str | Path, name: str | None = None) -> AnswerFile:
    """As ``hookviz.course.report``."""
    target = to_path(path)
    content = _read_answers(target)
    exercises: dict[str, Record] = content["exercises"]
    for attempt in _attempts[_merged.get(content["id"], 0) :]:
        _add_attempt(exercises, attempt)
    content["exercises"] = dict(sorted(exercises.items()))
    if _tests:
        content["tests"] = {**content.get("tests", {}), **_tests}
    if name is not None:
        content["name"] = name
    count = len(_attempts)
    _write_answers(content, target)
    _merged[content["id"]] = count
    return AnswerFile(target, content["exercises"])


def read_notes(path: str | Path, exercise: str) -> Record:
    """Return what a file of answers notes about an exercise beside its record; empty if it notes nothing."""
    return dict(_read_answers(to_path(path)).get("notes", {}).get(exercise, {}))


def write_notes(path: str | Path, exercise: str, notes: Record) -> None:
    """Note something about an exercise in a file of answers; the file is made if there is none."""
    target = to_path(path)
    content = _read_answers(target)
    content["notes"] = {**content.get("notes", {}), exercise: notes}
    _write_answers(content, target)


def _write_answers(content: Record, target: Path) -> None:
    write_atomically(json.dumps(content, ensure_ascii=False, indent=2) + "\n", target)


def _add_attempt(exercises: dict[str, Record], attempt: Attempt) -> None:
    """Add an attempt to the record of its exercise."""
    verdict, answer, moment = attempt
    new = {"score": 0.0, "tries": 0, "first_answer": answer, "first_time": moment}
    record = exercises.setdefault(verdict.exercise, new)
    if verdict.score >= record["score"]:
        record["score"], record["right"] = verdict.score, verdict.right
    record["tries"] += 1
    record["last_answer"], record["last_time"] = answer, moment


def _read_answers(path: Path) -> Record:
    """Read a file of answers; make an empty one, with an id of its own, if there is no file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {"format": FORMAT, "version": VERSION, "id": secrets.token_hex(8), "name": None, "exercises": {}}
    except UnicodeDecodeError:
        text = ""
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not _is_valid(content):
        raise ValueError(
            _(
                "{path} is not a file of answers that hookviz wrote, so it was left as it is. Choose another name."
            ).format(path=path)
        )
    return dict(content)


def _is_valid(content: Any) -> bool:
    """Whether the content of a file has the form that ``write_report`` writes."""
    if not isinstance(content, dict) or (content.get("format"), content.get("version")) != (FORMAT, VERSION):
        return False
    exercises = content.get("exercises")
    return (
        isinstance(content.get("id"), str)
        and isinstance(exercises, dict)
        and isinstance(content.get("notes", {}), dict)
        and all(isinstance(record, dict) and _is_record(record) for record in exercises.values())
    )


def _is_record(record: Record) -> bool:
    score, tries = record.get("score"), record.get("tries")
    return isinstance(score, int | float) and 0 <= score <= 1 and isinstance(tries, int)
