"""Questions out of a trace, for a worksheet or a test: asked as in the player, and judged in the same way."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from hookviz.predict import Numbers, Question, near, questions
from hookviz.quiz.verdict import Verdict
from hookviz.table import Table
from hookviz.values import flat
from hookviz.words import say

if TYPE_CHECKING:
    from hookviz.trace import Trace

DIGITS = 3
"""Whoever gives so many digits of a number has given it."""


class Asked(NamedTuple):
    """One question: its number (from 1), the step that it waits before (from 0), and what there is to choose from."""

    number: int
    step: int
    text: str
    choices: tuple[str, ...]


class Quiz(Table[Asked]):
    """The questions about a recording: a table in Jupyter, rows in Python; ``check`` judges an answer.

    A question may tell what the answer to one before it was. In the player they come one at a time (key P).
    """

    def __init__(self, trace: "Trace") -> None:
        self._asked: list[Question] = []
        rows = []
        for step, question in sorted(questions(trace.steps, trace.firings).items()):
            self._asked.append(question)
            rows.append(Asked(len(self._asked), step, question["text"], tuple(question.get("choices", ()))))
        head = [say(f"quiz.{name}") for name in ("number", "step", "text", "choices")]
        super().__init__(rows, head, _cells, say("player.ask_none"))

    def check(self, number: int, answer: Any) -> Verdict:
        """Whether ``answer`` is right, and if not, why not, as far as the trace can tell.

        Args:
            number: the number of the question, from 1.
            answer: a number, several in a list, a tuple or a tensor, or the same as a text; for a question with
                choices, the number or the text of one.

        Raises:
            ValueError: there is no question of that number.
        """
        if number not in range(1, len(self) + 1):
            raise ValueError(say("error.quiz.number", number=number, count=len(self)))
        question = self._asked[number - 1]
        right, reason = (False, say("check.none")) if answer is None or answer is ... else _judged(question, answer)
        return Verdict(str(number), right, reason, of_quiz=True)


def _cells(asked: Asked) -> tuple[str, ...]:
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
    given = str(answer).strip().casefold()
    known = [*(str(place) for place in range(1, len(choices) + 1)), *(choice.casefold() for choice in choices)]
    return known.index(given) % len(choices) if given in known else None


def _judged_numbers(question: Question, answer: Any) -> tuple[bool, str]:
    given, right = _read(answer), _read(question["answer"])
    if given is None or right is None:
        return False, say("player.ask_unread")
    if len(given) != len(right):
        return False, say("player.ask_count", count=len(right))
    if _agree(given, right):
        return True, say("quiz.reckoned")
    known = (text for wrong, text in question["reasons"] if (numbers := _read(wrong)) and near(given, numbers))
    return False, next(known, say("player.ask_other"))


def _read(answer: Any) -> Numbers | None:
    """The numbers in an answer; None where there is anything else in it, or nothing."""
    try:
        return [None if str(part).strip().casefold() == "none" else float(part) for part in _parts(answer)] or None
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def _parts(answer: Any) -> Iterator[Any]:
    if isinstance(answer, (list, tuple)):
        for part in answer:
            yield from _parts(part)
    elif isinstance(answer, torch.Tensor):
        yield from flat(answer.tolist())
    elif isinstance(answer, str):
        plain = answer.replace("\N{MINUS SIGN}", "-").replace("\N{INFINITY}", "inf")
        yield from filter(None, re.split(r"[,;\s]+", re.sub(r"tensor|[()[\]]", " ", plain)))
    else:
        yield answer


def _agree(given: Numbers, right: Numbers) -> bool:
    rounded = [None if part is None else float(f"{part:.{DIGITS}g}") for part in right]
    return near(given, right) or all(
        near([one], [exact]) or one == short for one, exact, short in zip(given, right, rounded, strict=True)
    )
