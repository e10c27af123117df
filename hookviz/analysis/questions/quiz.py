"""Questions out of a trace, for a worksheet or a test: asked as in the player, and judged in the same way."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hookviz.analysis.questions.answers import are_near, plain, read_numbers
from hookviz.analysis.questions.prediction import Question, questions
from hookviz.analysis.questions.verdict import Verdict
from hookviz.support.messages import say
from hookviz.support.table import Table

if TYPE_CHECKING:
    from hookviz.trace import TraceData


class QuizQuestion(NamedTuple):
    """One question: its number (from 1), the step that it waits before (from 0), and what there is to choose from."""

    number: int
    step: int
    text: str
    choices: tuple[str, ...]


class Quiz(Table[QuizQuestion]):
    """The questions about a recording: a table in Jupyter, rows in Python; ``check`` judges an answer.

    A question may tell what the answer to one before it was. In the player they come one at a time (key P).
    """

    def __init__(self, trace: "TraceData") -> None:
        self._asked: list[Question] = []
        rows = []
        for step, question in sorted(questions(trace.steps, trace.firings).items()):
            self._asked.append(question)
            rows.append(QuizQuestion(len(self._asked), step, question["text"], tuple(question.get("choices", ()))))
        head = [say(f"quiz.{name}") for name in ("number", "step", "text", "choices")]
        super().__init__(rows, head, _cells, say("player.ask_none"))

    def check(self, number: int, answer: Any) -> Verdict:
        """Whether ``answer`` is right, and if not, why not, as far as the trace can tell.

        Args:
            number: the number of the question, from 1.
            answer: a number, several in a list, a tuple or a tensor, or the same as a text, which is read and judged
                as the player does it. Where no gradient is the answer, it is ``"None"``: None
                itself is no answer yet. For a question with choices, the number or the text of one.

        Raises:
            ValueError: there is no question of that number.
        """
        if number not in range(1, len(self) + 1):
            raise ValueError(say("error.quiz.number", number=number, count=len(self)))
        question = self._asked[number - 1]
        right, reason = (False, say("quiz.none")) if answer is None or answer is ... else _judged(question, answer)
        return Verdict(str(number), right, reason, of_quiz=True)


def _cells(asked: QuizQuestion) -> tuple[str, ...]:
    choices = (say("quiz.choice", number=place, choice=choice) for place, choice in enumerate(asked.choices, 1))
    return str(asked.number), str(asked.step + 1), asked.text, "; ".join(choices)


def _judged(question: Question, answer: Any) -> tuple[bool, str]:
    if "choices" not in question:
        return _judged_numbers(question, answer)
    place = _place(question["choices"], answer)
    if place is None:
        return False, say("quiz.unread", count=len(question["choices"]))
    right = place == question["right"]
    return right, say("quiz.chosen") if right else question["reasons"][place]


def _place(choices: Sequence[str], answer: Any) -> int | None:
    """Which of the choices is meant, by its number or its text."""
    given = plain(str(answer)).strip()
    known = [*(str(place) for place in range(1, len(choices) + 1)), *(plain(choice) for choice in choices)]
    return known.index(given) % len(choices) if given in known else None


def _judged_numbers(question: Question, answer: Any) -> tuple[bool, str]:
    given, recorded = read_numbers(answer), read_numbers(question["answer"])
    if given is None or recorded is None:
        return False, say("player.ask_unread")
    if len(given) != len(recorded):
        return False, say("player.ask_count", count=len(recorded))
    if are_near(given, recorded):
        return True, say("quiz.reckoned")
    known = (
        text for wrong, text in question["reasons"] if (numbers := read_numbers(wrong)) and are_near(given, numbers)
    )
    return False, next(known, say("player.ask_other"))
