"""The questions of a trace as a table, for a worksheet or a test: the same questions and rules as in the player."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hookviz.analysis.questions.grading import are_near, normalise, read_numbers
from hookviz.analysis.questions.prediction import Question, make_questions
from hookviz.course.verdict import Verdict
from hookviz.support.messages import say
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
        head = [say(f"quiz.{name}") for name in ("number", "step", "text", "choices")]
        super().__init__(rows, head, _format_question, say("player.ask_none"))

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
            raise ValueError(say("error.quiz.number", number=number, count=len(self)))
        question = self._questions[number - 1]
        right, reason = (False, say("quiz.none")) if answer is None or answer is ... else _judge(question, answer)
        return Verdict(str(number), right, reason, of_quiz=True)


def _format_question(question: QuizQuestion) -> tuple[str, ...]:
    """The cells of a row in the table of questions."""
    choices = (say("quiz.choice", number=place, choice=choice) for place, choice in enumerate(question.choices, 1))
    return str(question.number), str(question.step + 1), question.text, "; ".join(choices)


def _judge(question: Question, answer: Any) -> tuple[bool, str]:
    """Whether an answer is right, and the reason."""
    if "choices" not in question:
        return _judge_numbers(question, answer)
    chosen = _find_choice(question["choices"], answer)
    if chosen is None:
        return False, say("quiz.unread", count=len(question["choices"]))
    right = chosen == question["right"]
    return right, say("quiz.chosen") if right else question["reasons"][chosen]


def _find_choice(choices: Sequence[str], answer: Any) -> int | None:
    """The index of the choice that an answer names by number or text; None if it names none."""
    given = normalise(str(answer)).strip()
    names = [*(str(place) for place in range(1, len(choices) + 1)), *(normalise(choice) for choice in choices)]
    return names.index(given) % len(choices) if given in names else None


def _judge_numbers(question: Question, answer: Any) -> tuple[bool, str]:
    """Judge an answer to a question without choices."""
    given, recorded = read_numbers(answer), read_numbers(question["answer"])
    if given is None or recorded is None:
        return False, say("player.ask_unread")
    if len(given) != len(recorded):
        return False, say("player.ask_count", count=len(recorded))
    if are_near(given, recorded):
        return True, say("quiz.reckoned")
    reasons = (
        text for wrong, text in question["reasons"] if (numbers := read_numbers(wrong)) and are_near(given, numbers)
    )
    return False, next(reasons, say("player.ask_other"))
