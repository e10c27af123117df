"""The questions of the reviews, polls and the exam: what they say is run, and their pages are fresh."""

import re
from collections import Counter
from collections.abc import Callable

import pytest

from hookviz.course import review
from hookviz.course.question_bank import format_html, read_questions
from tests.course import question_proofs
from tests.course.question_proofs import CELLS
from tests.course.reading import code_with_checks, has_assertion
from tools.questions import read_exam, write_answers, write_exam, write_polls
from tools.translation.message_sources import NOTEBOOKS

BANK, EXAM = read_questions(), {question.key: question for question in read_exam(NOTEBOOKS)}
ALL = [*BANK.values(), *EXAM.values()]
REVIEWED = [f"{number:02}" for number in range(2, 15)]
PROOFS = {name: function for name, function in vars(question_proofs).items() if name.startswith("question_")}


@pytest.mark.parametrize("proof", PROOFS.values(), ids=PROOFS.keys())
def test_what_the_right_choice_says_is_so(proof: Callable[[], None]) -> None:
    proof()


def test_the_right_choice_of_every_question_is_run_here_or_in_a_cell_that_is_checked() -> None:
    assert sorted([*CELLS, *(name.removeprefix("question_") for name in PROOFS)]) == sorted([*BANK, *EXAM])
    for place in CELLS.values():
        lesson, cell = place.split("#")
        [path] = NOTEBOOKS.glob(f"{lesson}_*.ipynb")
        assert has_assertion(code_with_checks(path.name, cell)), place


def test_the_bank_has_questions_for_each_lesson_and_the_exam_twenty_others() -> None:
    counts = Counter(question.lesson for question in BANK.values())
    assert sorted(counts) == ["01", *REVIEWED]
    assert len(BANK) == 41 and min(counts.values()) >= 2
    assert len(EXAM) == 20
    assert len({" ".join(question.ask.split()).casefold() for question in ALL}) == len(ALL)


def test_a_question_has_one_right_choice_and_reasons_for_all() -> None:
    for question in ALL:
        choices = question.choices
        assert 3 <= len(choices) <= 4 and sum(choice.right for choice in choices) == 1, question.key
        assert len({choice.text for choice in choices}) == len(choices), question.key
        assert question.ask.endswith("?") and question.ask.count("`") % 2 == 0, question.key
        for choice in choices:
            assert choice.reason.endswith((".", "?")) and bool(choice.chosen) is not choice.right, question.key
            assert all(text.count("`") % 2 == 0 for text in (choice.text, choice.reason, choice.chosen)), question.key


def test_neither_place_nor_length_of_the_right_choice_says_anything() -> None:
    letters = Counter(question.letter for question in ALL)
    assert set(letters) == set("abcd") and max(letters.values()) < 2.5 * min(letters.values())
    longest = [max(question.choices, key=lambda choice: len(choice.text)) for question in ALL]
    assert sum(choice.right for choice in longest) <= 0.3 * len(ALL)
    assert not [question.key for question in ALL if len({choice.text.endswith(".") for choice in question.choices}) > 1]


# -- reviews


@pytest.mark.parametrize("lesson", REVIEWED)
def test_a_review_asks_three_questions_from_earlier_lessons(lesson: str) -> None:
    questions = review(lesson).questions
    assert len({question.key for question in questions}) == 3
    follows = {"12": 6, "14": 10}.get(lesson, int(lesson))  # lesson 12 needs none after 05, and 14 none after 09
    ages = [follows - int(question.lesson) for question in questions]
    assert ages[0] == 1 and min(ages) >= 1
    assert lesson == "02" or 2 <= ages[1] <= 4
    before = review(f"{int(lesson) - 1:02}").questions if lesson != "02" else ()
    assert not {question.key for question in before} & {question.key for question in questions}


def test_a_lesson_without_earlier_ones_has_no_review() -> None:
    with pytest.raises(ValueError, match=r"There is no review for lesson .*02 to 14.*lesson 01 has none"):
        review("01")


def test_a_review_works_without_a_kernel_and_without_scripts() -> None:
    asked = review("12")
    page = asked._repr_html_()
    choices = [choice for question in asked.questions for choice in question.choices]
    assert page.count("<details") == page.count("</details>") == page.count("<summary>") == len(choices)
    assert page.count("Right.</b>") == 3 and "<script" not in page and "`" not in page
    assert all(f"<summary>{format_html(choice.text)}</summary>" in page for choice in choices)
    assert not re.search(r"<details[^>]*\bopen\b", page)


def test_a_review_in_a_terminal_shows_the_choices_and_keeps_the_answers_back() -> None:
    asked = review("05")
    text = repr(asked)
    for question in asked.questions:
        assert question.ask in text and all(f") {choice.text}\n" in text for choice in question.choices)
        assert not any(choice.reason in text for choice in question.choices)
        assert f" {question.letter}) " in asked.answers
    assert text.endswith('print(review("05").answers)')


# -- pages


def test_the_polls_have_every_question_and_the_exam_no_answer_and_its_answers_are_fresh() -> None:
    polls, exam, answers = write_polls(BANK.values()), write_exam(EXAM.values()), write_answers(EXAM.values())
    assert all(question.ask in polls for question in BANK.values())
    assert not any(choice.reason in exam for question in EXAM.values() for choice in question.choices)
    assert all(question.ask in exam and question.ask in answers for question in EXAM.values())
    page = NOTEBOOKS / "solutions" / "exam_answers.md"
    assert page.read_text(encoding="utf-8") == answers, "run: make lessons"
