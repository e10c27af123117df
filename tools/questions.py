"""Make the lecturer's pages of multiple-choice questions: ``python -m tools.questions``.

The polls come from the bank of questions of hookviz, the exam and its answers from ``notebooks/solutions/exam.json``.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from hookviz.course.question_bank import Question, parse_questions, read_questions

ROOT = Path(__file__).resolve().parent.parent
EXAM = ROOT / "notebooks" / "solutions" / "exam.json"
POLLS_HEAD = """\
---
orphan: true
---

# Polls

Questions for the room, lesson by lesson. Ask one, let everybody vote, let two neighbours who disagree talk for a
minute, and vote again. Below each question, a click shows the right choice and, for each wrong one, why people choose
it and why it is wrong. `hv.review` asks the same questions in the lessons.
`python -m tools.questions` makes this page from `hookviz/course/questions.en.json`.
"""
EXAM_HEAD = """\
---
orphan: true
---

# Exam

Twenty questions about lessons 01 to 11 and 13, for 45 minutes. One choice of each is right.
`notebooks/solutions/exam_answers.md` has the answers, and this site does not have that file.
None of the questions is asked in the lessons or in the [polls](polls.md).
"""
FOLD = "<details>\n<summary>The answer, and why people choose the others</summary>\n\n{}\n</details>\n"
ANSWERS_HEAD = """\
# Answers to the exam

The exam is `site/exam.md`. `python -m tools.questions` makes both from `exam.json`.
"""


def read_exam() -> Mapping[str, Question]:
    """Read the questions of the exam, in their order."""
    return parse_questions(EXAM.read_text(encoding="utf-8"))


def write_polls(questions: Iterable[Question]) -> str:
    """Write the page of polls: each question with its choices, and why people choose the wrong ones."""
    parts, lesson = [POLLS_HEAD], ""
    for question in questions:
        if question.lesson != lesson:
            lesson = question.lesson
            parts.append(f"## Lesson {lesson}\n")
        parts += [f"**{question.key}** {question.ask}\n", _list_choices(question), FOLD.format(_explain(question))]
    return "\n".join(parts)


def write_exam(questions: Iterable[Question]) -> str:
    """Write the page of the exam, without answers."""
    parts = [EXAM_HEAD]
    for number, question in enumerate(questions, 1):
        parts += [f"**{number}.** {question.ask}\n", _list_choices(question)]
    return "\n".join(parts)


def write_answers(questions: Iterable[Question]) -> str:
    """Write the answers to the exam, with the reasons."""
    parts = [ANSWERS_HEAD]
    for number, question in enumerate(questions, 1):
        parts += [f"**{number}.** {question.ask}\n", _explain(question)]
    return "\n".join(parts)


def _list_choices(question: Question) -> str:
    return "".join(f"- {letter}) {choice.text}\n" for letter, choice in question.lettered())


def _explain(question: Question) -> str:
    lines: list[str] = []
    for letter, choice in question.lettered():
        if choice.right:
            lines.insert(0, f"- **{letter}) is right.** {choice.reason}\n")
        else:
            lines.append(f"- {letter}) *Why people choose it:* {choice.chosen} *Why it is wrong:* {choice.reason}\n")
    return "".join(lines)


def make_pages() -> Mapping[Path, str]:
    """Make all pages: path → text."""
    exam = read_exam().values()
    return {
        ROOT / "site" / "polls.md": write_polls(read_questions().values()),
        ROOT / "site" / "exam.md": write_exam(exam),
        EXAM.with_name("exam_answers.md"): write_answers(exam),
    }


def main() -> None:
    """Write all pages."""
    for path, text in make_pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
