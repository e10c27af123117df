"""The concept test: each piece of code prints what its right answer says, and no other answer says the same."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn

from hookviz.course import concept_test, report
from tests.course.reading import FOLDER
from tools.concept_results import Sheet, describe, read_key, read_sheets

QUESTIONS = (FOLDER.parent / "site" / "concept_test.md").read_text(encoding="utf-8").split("## Question ")[1:]
ANSWERS = read_key((FOLDER / "solutions" / "concept_test.md").read_text(encoding="utf-8"))


def run(code: str) -> str:
    """Run code, and return what it prints, on one line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(code, {"torch": torch, "nn": nn})
    return ", ".join(line.strip() for line in printed.getvalue().strip().splitlines())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda text: text.split()[0])
def test_the_right_answer_is_what_the_code_prints(question: str) -> None:
    number = question.split()[0]
    code = re.findall(r"```python\n(.+?)\n```", question, re.DOTALL)[0]
    choices = dict(re.findall(r"^- \*\*([A-D])\*\* `?(.+?)`?$", question, re.MULTILINE))
    assert len(set(choices.values())) == 4
    assert choices[ANSWERS[int(number)]] == run(code)


def test_thirty_questions_make_two_forms_and_their_right_answers_are_spread() -> None:
    marked = [Sheet(form, "-" * 15).mark(ANSWERS) for form in "AB"]
    assert sorted(marked[0] | marked[1]) == sorted(ANSWERS) == list(range(1, len(QUESTIONS) + 1)) == list(range(1, 31))
    assert min(list(ANSWERS.values()).count(letter) for letter in "ABCD") >= 4


def test_answers_go_into_the_file_and_the_class_gets_its_gain(new_session: Path) -> None:
    right = dict.fromkeys(range(1, 31), "A")
    concept_test("A", "before", "a a a a a  - - - - -  B B B B B")
    concept_test("B", "after", "A A A A A  A A A A A  B B B B B")
    path = report(new_session / "answers.json").path
    told = describe(read_sheets([path]), right)
    assert "before: 5.0 points" in told and "after: 10.0 points" in told
    assert "gain: 50% of what could be gained" in told and "Fewer than 10 people" in told
    assert "\n1: 100% of 1 → not asked\n2: not asked → 100% of 1\n" in told


def test_an_incomplete_sheet_is_refused() -> None:
    with pytest.raises(ValueError, match="these are 14"):
        concept_test("A", "after", "A" * 14)
