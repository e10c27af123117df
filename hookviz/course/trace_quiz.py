"""The questions of a trace as a table, for a worksheet or a test: the same questions and rules as in the player."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hookviz.analysis.questions.grading import are_near, normalise, read_numbers
from hookviz.analysis.questions.prediction import Question, make_questions
from hookviz.course.verdict import Verdict
from hookviz.support.messages import _
from hookviz.support.table import Table

if TYPE_CHECKING:
    from hookviz.api.trace import Trace


class QuizQuestion(NamedTuple):
    """A question of a quiz."""

    number: int
    """Its number, counted from 1."""
    step: int
    """The step before which the player asks it, counted from 0."""
    text: str
    """What is asked."""
    choices: tuple[str, ...]
    """What one can answer; empty if the answer is a number or several."""


class Quiz(Table[QuizQuestion]):
    """The questions about a trace: a table in Jupyter, rows in Python; ``check`` judges an answer.

    A question may give away the answer to an earlier one. The player asks them one at a time (key P).
    """

    def __init__(self, trace: "Trace") -> None:
        self._questions: list[Question] = []
        rows = []
        for step, question in sorted(make_questions(trace.steps, trace.firings).items()):
            self._questions.append(question)
            rows.append(QuizQuestion(len(self._questions), step, question["text"], tuple(question.get("choices", ()))))
        head = [_("Question"), _("Before step"), _("What is asked"), _("Choices")]
        super().__init__(rows, head, _format_question, _("There is nothing to predict here."))

    def check(self, number: int, answer: Any) -> Verdict:
        """Judge whether ``answer`` is right; if it is wrong, the verdict says why, if the trace shows it.

        Args:
            number: the number of the question, from 1.
            answer: a number; several numbers in a list, a tuple or a tensor; or a text with them, which is read as in
                the player. If the answer is that there is no gradient, pass ``"None"``: None itself means that there is
                no answer yet. For a question with choices, the number or the text of a choice.

        Raises:
            ValueError: no question has this number.
        """
        if number not in range(1, len(self) + 1):
            raise ValueError(
                _("There is no question {number}: they are numbered from 1 to {count}.").format(
                    number=number, count=len(self)
                )
            )
        question = self._questions[number - 1]
        right, reason = (
            (False, _("Nothing was entered yet. Put your answer in place of None and run the cell again."))
            if answer is None or answer is ...
            else _judge(question, answer)
        )
        return Verdict(str(number), right, reason, of_quiz=True)


def _format_question(question: QuizQuestion) -> tuple[str, ...]:
    """The cells of a row in the table of questions."""
    choices = (
        _("({number}) {choice}").format(number=place, choice=choice) for place, choice in enumerate(question.choices, 1)
    )
    return str(question.number), str(question.step + 1), question.text, "; ".join(choices)


def _judge(question: Question, answer: Any) -> tuple[bool, str]:
    """Whether an answer is right, and the reason."""
    if "choices" not in question:
        return _judge_numbers(question, answer)
    chosen = _find_choice(question["choices"], answer)
    if chosen is None:
        return False, _("Answer with the number of one of the {count} choices, or with its text.").format(
            count=len(question["choices"])
        )
    right = chosen == question["right"]
    return right, _("The trace says the same.") if right else question["reasons"][chosen]


def _find_choice(choices: Sequence[str], answer: Any) -> int | None:
    """The index of the choice that an answer names by number or text; None if it names none."""
    given = normalise(str(answer)).strip()
    names = [*(str(place) for place in range(1, len(choices) + 1)), *(normalise(choice) for choice in choices)]
    return names.index(given) % len(choices) if given in names else None


def _judge_numbers(question: Question, answer: Any) -> tuple[bool, str]:
    """Judge an answer to a question without choices."""
    given, recorded = read_numbers(answer), read_numbers(question["answer"])
    if given is None or recorded is None:
        return False, _("Type numbers such as 1.5, or None.")
    if len(given) != len(recorded):
        return False, _(
            "Numbers to type: {count}. Put commas between numbers, never inside one; the decimal sign is a point."
        ).format(count=len(recorded))
    if are_near(given, recorded):
        return True, _("That is the value in the trace.")
    reasons = (
        text for wrong, text in question["reasons"] if (numbers := read_numbers(wrong)) and are_near(given, numbers)
    )
    return False, next(
        reasons, _("Not that. Read the hook: what does it return, and what happens if it returns nothing?")
    )
