"""The lecturer's pages of multiple-choice questions: polls, an exam, and its answers."""

from collections.abc import Iterable
from pathlib import Path

from hookviz.course.question_bank import Question, parse_questions, read_questions
from tools.translation.translated import translatable, translated

HEAD = """\
---
orphan: true
---

# {title}

{about}
"""
ABOUT_POLLS = (
    translatable(
        "Questions for the room, lesson by lesson. Ask one, let everybody vote, let two neighbours who disagree talk "
        "for a minute, and vote again."
    ),
    translatable(
        "Below each question, a click shows the right choice and, for each wrong one, why people choose it and why it "
        "is wrong."
    ),
    translatable("`review` asks the same questions in the lessons."),
    translatable(
        "`make slides LESSONS=polls` makes a slide of each, with its answer on the slide below, and a file in GIFT, "
        "which Moodle imports."
    ),
)
ABOUT_EXAM = (
    translatable("Twenty questions about lessons 01 to 11 and 13, for 45 minutes. One choice of each is right."),
    translatable("`notebooks/solutions/exam_answers.md` has the answers, and this site does not have that file."),
    translatable("None of the questions is asked in the lessons or in the [polls](polls.md)."),
)
FOLD = "<details>\n<summary>{}</summary>\n\n{}\n</details>\n"
ABOUT_ANSWERS = translatable("The exam is a page of the site. `make lessons` makes this page from `exam.json`.")


def write_pages(source: Path, lessons: Path, language: str) -> None:
    """Write the pages of the site among its sources; the exam is that of the folder of the lessons."""
    (source / "polls.md").write_text(write_polls(read_questions(language).values(), language), encoding="utf-8")
    (source / "exam.md").write_text(write_exam(read_exam(lessons), language), encoding="utf-8")


def read_exam(lessons: Path) -> list[Question]:
    """Read the questions of the exam, in their order."""
    return [*parse_questions((lessons / "solutions" / "exam.json").read_text(encoding="utf-8")).values()]


def write_polls(questions: Iterable[Question], language: str = "en") -> str:
    """Write the page of polls: each question with its choices, and why people choose the wrong ones."""
    about = " ".join(translated(text, language) for text in ABOUT_POLLS)
    parts, lesson = [HEAD.format(title=translated("Polls", language), about=about)], ""
    fold = translated("The answer, and why people choose the others", language)
    for question in questions:
        if question.lesson != lesson:
            lesson = question.lesson
            heading = translated("Lesson {number}", language)
            parts.append(f"## {heading.format(number=lesson)}\n")
        answer = FOLD.format(fold, explain(question, language))
        parts += [f"**{question.key}** {question.ask}\n", list_choices(question), answer]
    return "\n".join(parts)


def write_exam(questions: Iterable[Question], language: str = "en") -> str:
    """Write the page of the exam, without answers."""
    about = " ".join(translated(text, language) for text in ABOUT_EXAM)
    parts = [HEAD.format(title=translated("Exam", language), about=about)]
    for number, question in enumerate(questions, 1):
        parts += [f"**{number}.** {question.ask}\n", list_choices(question)]
    return "\n".join(parts)


def write_answers(questions: Iterable[Question], language: str = "en") -> str:
    """Write the answers to the exam, with the reasons."""
    title = translated("Answers to the exam", language)
    parts = [f"# {title}\n\n{translated(ABOUT_ANSWERS, language)}\n"]
    for number, question in enumerate(questions, 1):
        parts += [f"**{number}.** {question.ask}\n", explain(question, language)]
    return "\n".join(parts)


def list_choices(question: Question) -> str:
    """List the choices of a question, each with its letter."""
    return "".join(f"{letter}) {choice.text}\n\n" for letter, choice in question.lettered())


def explain(question: Question, language: str) -> str:
    """Say which choice is right and why, and of each other one why people choose it and why it is wrong."""
    chosen = translated("Why people choose it:", language)
    but = translated("Why it is wrong:", language)
    lines: list[str] = []
    for letter, choice in question.lettered():
        if choice.right:
            right = translated("{letter}) is right.", language).format(letter=letter)
            lines.insert(0, f"**{right}** {choice.reason}\n\n")
        else:
            lines.append(f"{letter}) *{chosen}* {choice.chosen} *{but}* {choice.reason}\n\n")
    return "".join(lines)
