"""Three multiple-choice questions from earlier lessons, out of a bank of questions about all lessons."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, TypeVar

from hookviz.support.messages import N_, _
from hookviz.support.messages.languages import current_language

_FROM_LESSON = N_("lesson {lesson}")
_ASKED_BEFORE = {"12": ("02", "03", "04", "05"), "14": tuple(f"{number:02}" for number in range(1, 10))}
"""The lessons that the review before an elective asks about, if that elective needs only these."""


Item = TypeVar("Item")


@dataclass(frozen=True)
class Choice:
    """One of the answers that a question offers."""

    text: str
    """What it says."""
    right: bool
    """Whether it is the right one."""
    reason: str
    """Why it is right or wrong."""
    chosen: str = ""
    """Why people choose it; empty for the right one."""


@dataclass(frozen=True)
class Question:
    """A multiple-choice question about a lesson. One choice is right; their order is the same for everybody."""

    key: str
    """The number of the question in the bank: that of its lesson, a dot, and its place."""
    lesson: str
    """The number of the lesson, such as ``04``."""
    ask: str
    """The question."""
    choices: tuple[Choice, ...]
    """What one can answer, in the order in which it is shown."""

    @property
    def letter(self) -> str:
        """The letter of the right choice."""
        return next(letter for letter, choice in self.lettered() if choice.right)

    def lettered(self) -> Iterator[tuple[str, Choice]]:
        """Yield each choice with its letter."""
        return zip("abcd", self.choices, strict=False)


@dataclass(frozen=True)
class Review:
    """Questions before a lesson. In a notebook each choice opens and says whether it is right; this needs no kernel."""

    lesson: str
    """The number of the lesson that comes next."""
    questions: tuple[Question, ...]
    """Three questions from earlier lessons."""

    @property
    def answers(self) -> str:
        """The right choices with their reasons, as text."""
        lines = []
        for number, question in enumerate(self.questions, 1):
            right = next(choice for choice in question.choices if choice.right)
            lines.append(f"{number} {question.letter}) {right.text}\n   {right.reason}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        lines: list[str] = [_("Three questions from earlier lessons")]
        for number, question in enumerate(self.questions, 1):
            lines += ["", f"{number} ({_(_FROM_LESSON).format(lesson=question.lesson)}) {question.ask}"]
            lines += [f"   {letter}) {choice.text}" for letter, choice in question.lettered()]
        return "\n".join(
            [
                *lines,
                "",
                _('The answers with their reasons: print(review("{lesson}").answers)').format(lesson=self.lesson),
            ]
        )

    def _repr_html_(self) -> str:
        asked = "".join(_question_html(number, question) for number, question in enumerate(self.questions, 1))
        how = _("Choose, then open your choice: it says whether it is right, and why.")
        return f'<div class="hv-review"><p>{escape(how)}</p>{asked}</div>'


def make_review(lesson: str) -> Review:
    """As ``hookviz.course.review``."""
    lessons = sorted({question.lesson for question in read_questions().values()})
    if lesson not in lessons[1:]:
        known = _("{first} to {last}").format(first=lessons[1], last=lessons[-1])
        raise ValueError(
            _(
                "There is no review for lesson {lesson}: there are reviews for {known}. A review asks about "
                "earlier lessons, and lesson 01 has none."
            ).format(lesson=lesson, known=known)
        )
    review, asked = Review("", ()), list[Question]()
    for number in range(1, lessons.index(lesson) + 1):
        earlier = _ASKED_BEFORE.get(lessons[number], lessons[:number])
        review = _draw_review(lessons[number], earlier, review.questions, asked)
        asked += review.questions
    return review


def _draw_review(
    lesson: str, earlier: Sequence[str], asked_last_time: Sequence[Question], asked: Sequence[Question]
) -> Review:
    """Draw the review before a lesson, of questions about the ``earlier`` lessons."""
    drawn: list[Question] = []
    for wanted in (earlier[-1:], earlier[-4:-1], earlier):
        avoided = [*drawn, *asked_last_time]
        drawn.append(_draw_question(lesson, wanted or earlier, drawn, avoided, asked))
    return Review(lesson, tuple(drawn))


def _draw_question(
    lesson: str,
    wanted: Sequence[str],
    drawn: Sequence[Question],
    avoided: Sequence[Question],
    asked: Sequence[Question],
) -> Question:
    """Draw a question of one of the ``wanted`` lessons that is not ``avoided``.

    It is if possible one that no review has ``asked`` yet, of a lesson that is not among ``drawn``.
    """
    candidates = [question for question in read_questions().values() if question.lesson in wanted]
    left = [question for question in candidates if question not in avoided]
    left = [question for question in left if question not in asked] or left
    of_new_lessons = [question for question in left if question.lesson not in {other.lesson for other in drawn}]
    return _shuffle(of_new_lessons or left, f"{lesson}/{len(drawn)}", lambda question: question.key)[0]


def read_questions(language: str | None = None) -> Mapping[str, Question]:
    """Read the bank of questions in one language, None for the current one: key of a question → the question.

    All texts are in one file per language, ``questions.en.json``. The first choice of each question there is the right
    one; a translation keeps the keys and the order of the choices.
    """
    return _read_questions(language or current_language())


@cache
def _read_questions(language: str) -> Mapping[str, Question]:
    return parse_questions(files(__package__).joinpath(f"questions.{language}.json").read_text(encoding="utf-8"))


def parse_questions(text: str) -> Mapping[str, Question]:
    """Parse a file of questions, and put the choices of each into an order that does not give the right one away."""
    return {key: _parse_question(key, entry) for key, entry in json.loads(text).items()}


def _parse_question(key: str, entry: Mapping[str, Any]) -> Question:
    choices = [
        Choice(choice["text"], number == 0, choice["reason"], choice.get("chosen", ""))
        for number, choice in enumerate(entry["choices"])
    ]
    places = _shuffle(range(len(choices)), key, str)
    return Question(key, entry["lesson"], entry["ask"], tuple(choices[place] for place in places))


def _shuffle(items: Iterable[Item], seed: str, name: Callable[[Item], str]) -> list[Item]:
    """Put items into an order that depends on ``seed`` and their names alone: the same on every computer."""
    return sorted(items, key=lambda item: sha256(f"{seed}:{name(item)}".encode()).digest())


# -- HTML


def _question_html(number: int, question: Question) -> str:
    lesson = escape(_(_FROM_LESSON).format(lesson=question.lesson))
    choices = "".join(_choice_html(choice) for choice in question.choices)
    return f"<p><b>{number}</b> ({lesson}) {format_html(question.ask)}</p>{choices}"


def _choice_html(choice: Choice) -> str:
    verdict, color = (_("Right."), "#15803d") if choice.right else (_("Not right."), "#b45309")
    style = f"border-left: 4px solid {color}; margin: 0.3em 0 0.6em 1em; padding-left: 0.6em"
    why = format_html(choice.reason)
    if choice.chosen:
        chosen, but = (f"<em>{escape(text)}</em>" for text in (_("Why people choose it:"), _("Why it is wrong:")))
        why = f"{chosen} {format_html(choice.chosen)}<br>{but} {why}"
    body = f'<p style="{style}"><b>{escape(verdict)}</b> {why}</p>'
    return f'<details style="margin-left: 1em"><summary>{format_html(choice.text)}</summary>{body}</details>'


def format_html(text: str) -> str:
    """Format the marks of a text, for ``code`` and *stress*, as HTML.

    >>> format_html("`a < b` is *so*")
    '<code>a &lt; b</code> is <em>so</em>'
    """
    parts = text.split("`")
    plain = [re.sub(r"\*(.+?)\*", r"<em>\1</em>", escape(part)) for part in parts[::2]]
    code = [f"<code>{escape(part)}</code>" for part in parts[1::2]]
    return "".join(part for pair in zip(plain, [*code, ""], strict=True) for part in pair)
