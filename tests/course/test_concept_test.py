"""The concept test: each piece of code prints what its right answer says, and no other answer says the same."""

import contextlib
import io
import re
import warnings

import pytest
import torch
from torch import nn

from tests.course.reading import FOLDER

QUESTIONS = (FOLDER.parent / "site" / "concept_test.md").read_text(encoding="utf-8").split("## Question ")[1:]
ANSWERS = dict(
    re.findall(r"^\| (\d+) \| ([A-D]) \|", (FOLDER / "solutions" / "concept_test.md").read_text(encoding="utf-8"), re.M)
)


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
    assert choices[ANSWERS[number]] == run(code)


def test_there_are_thirty_questions_whose_right_answers_are_spread() -> None:
    assert len(QUESTIONS) == len(ANSWERS) == 30
    assert min(list(ANSWERS.values()).count(letter) for letter in "ABCD") >= 4
