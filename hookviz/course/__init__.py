"""The exercises of the lessons: check answers, keep tools, ask about earlier lessons, quiz, and report scores.

Each function imports what it needs when it is called: a quiz of a saved trace needs no torch.
"""

from typing import TYPE_CHECKING, Any

from hookviz.course.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from hookviz.api.trace import Trace
    from hookviz.course.answer_log import AnswerFile
    from hookviz.course.question_bank import Review
    from hookviz.course.trace_quiz import Quiz

__all__ = ["Verdict", "check", "concept_test", "keep", "kept", "quiz", "report", "review"]


def check(exercise: str, answer: Any) -> Verdict:
    """Check whether ``answer`` solves ``exercise``, and explain why if it does not.

    The verdict has a ``score``: 1 for a right answer, part of that for one that is partly right, else 0.
    ``report`` writes the verdicts of the session into a file.

    Args:
        exercise: the number of the exercise, such as ``"02.1"``.
        answer: a number, a name or a function, as the exercise asks; None for no answer yet.

    Raises:
        ValueError: there is no such exercise.

    >>> from hookviz.course import check
    >>> check("02.1", 8)
    Exercise 02.1, not yet: That is what arrives at c. Two hooks of c then work on it, before it is kept.
    """
    from hookviz.course.exercises import judge_answer

    return judge_answer(exercise, answer)


def concept_test(form: str, moment: str, answers: str) -> None:
    """Note your answers to the concept test, for ``report``. It says nothing about whether they are right.

    The questions are on the page of the concept test. A class takes one form before the course, the other one after it.

    Args:
        form: ``"A"`` or ``"B"``.
        moment: ``"before"`` or ``"after"`` the course.
        answers: a letter from A to D for each of the 15 questions, in their order; ``-`` for one that is left open.

    Raises:
        ValueError: there is no such form or moment, or the answers are not 15 letters.

    >>> from hookviz.course import concept_test
    >>> concept_test("A", "before", "A B C D A  B C D A B  C D A B -")
    Noted. What is right, you hear after the course. report(...) writes the answers into your file.
    """
    from hookviz.course.answer_log import note_answers

    note_answers(form, moment, answers)


def keep(tool: Any) -> "Verdict | None":
    """Write a tool that you have built into the file ``my_hooks.py``, beside the notebook.

    If an exercise asks for a tool of this name, it must be right. The file also gets what the tool needs: its imports,
    and other functions of yours that it calls. A tool of the same name is replaced; the rest of the file stays, so you
    can also edit it. In any program in that folder, ``from my_hooks import find_silent`` works then.

    Args:
        tool: a function or a class that a cell or a file defines.

    Returns:
        None if the tool was written, and otherwise the verdict, which says why it is not right yet.

    Raises:
        TypeError: ``tool`` is no function or class.
        ValueError: it uses a variable of the notebook that cannot be written into a file, such as a network.
        OSError: the file cannot be written.

    >>> from hookviz.course import keep
    >>> def find_silent(net, loss):
    ...     return []
    >>> keep(find_silent)
    Exercise 01.8, not yet: ...
    """
    from hookviz.course.toolbox import keep_tool

    return keep_tool(tool)


def kept(name: str) -> Any:
    """Return a tool from your file ``my_hooks.py`` or, if you have not kept it yet, the one of the course.

    It prints which of the two it is.

    Args:
        name: the name of the tool, such as ``"find_silent"``.

    Raises:
        ValueError: there is no such tool.

    >>> import torch
    >>> from hookviz.course import kept
    >>> find_tensors = kept("find_tensors")
    find_tensors: the course's own. Yours comes with exercise 03.9 and keep(find_tensors).
    >>> len(find_tensors({"a": torch.ones(2), "b": [torch.ones(3), None]}))
    2
    """
    from hookviz.course.toolbox import find_kept

    return find_kept(name)


def review(lesson: str) -> "Review":
    """Ask three multiple-choice questions from the lessons before ``lesson``.

    One is from the lesson before, one from two to four lessons before, and one from any earlier lesson. Lesson 12 needs
    lessons 02 to 05, and lesson 14 lessons 01 to 09: their questions are about these. They depend on the lesson alone,
    so everybody gets the same ones; two lessons in a row share none. In a notebook, open a choice to see whether it is
    right and why; this also works on a page without a kernel. In a terminal, print the ``answers`` of what is returned.

    Args:
        lesson: the number of the lesson, from ``"02"`` to ``"14"``.

    Raises:
        ValueError: there is no such lesson, or it is lesson 01, which has no earlier ones.

    >>> from hookviz.course import review
    >>> [question.lesson for question in review("05").questions]
    ['04', '03', '02']
    >>> print(review("05").questions[0].ask)
    A full backward hook on the first layer gets `grad_input = (None,)`, and a warning. ...
    """
    from hookviz.course.question_bank import make_review

    return make_review(lesson)


def report(path: "str | Path", name: str | None = None) -> "AnswerFile":
    """Write the verdicts of this session into the file ``path``, as JSON, for example to hand it in.

    For each exercise that was answered the file has the best ``score`` (0 to 1), the number of ``tries``, and the first
    and the last answer, as text, with their times (UTC). If the file exists already, the verdicts are merged into it:
    call this once in each lesson, with the same file, and before you restart a kernel, which forgets what was not
    written. To call it again adds only what is new. The file is written completely or not at all. It holds no name and
    nothing else about you or your computer, except what you typed as an answer, and ``name`` if you give one.

    Args:
        path: the file, such as ``"answers.json"``.
        name: your name or number, if it is to be in the file.

    Raises:
        ValueError: the file exists and is not a file of answers; it stays unchanged.
        OSError: the file cannot be read or written.

    >>> import tempfile
    >>> from hookviz.course import check, report
    >>> verdict = check("01.1", 12)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = report(f"{folder}/answers.json")
    >>> written.exercises["01.1"]["score"]
    1.0
    """
    from hookviz.course.answer_log import write_report

    return write_report(path, name)


def quiz(trace: "Trace") -> "Quiz":
    """Make at most 100 questions about what the hooks of ``trace`` do or, if no hook ran, about what the nodes send.

    Args:
        trace: a recorded or loaded trace, also of your own model.

    Returns:
        A table of questions; its ``check`` judges an answer as the player does, and says why an answer is wrong.

    >>> import torch, hookviz as hv
    >>> from hookviz.course import quiz
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 10), hv.record() as trace:
    ...     (x * x).backward()
    >>> questions = quiz(trace)
    >>> questions[0].text
    'λ grad * 10 is about to run on x; the gradient is 6. What comes out?'
    >>> questions.check(1, 6)
    Question 1, not yet: 6 is the gradient before λ grad * 10.
    >>> questions.check(1, 60)
    Question 1: right. That is the value in the trace.
    """
    from hookviz.course.trace_quiz import Quiz

    return Quiz(trace)
