"""Check answers to the exercises of the lessons. The exercises are imported when the first answer is checked."""

from typing import Any

from hookviz.analysis.questions.answer_verdict import Verdict

__all__ = ["Verdict", "check"]


def check(exercise: str, answer: Any) -> Verdict:
    """Check whether ``answer`` solves ``exercise``, and explain why if it does not.

    Args:
        exercise: the number of the exercise, such as ``"02.1"``.
        answer: a number, a name or a function, as the exercise asks; None for no answer yet.

    Raises:
        ValueError: there is no such exercise.

    >>> check("02.1", 8)
    Exercise 02.1, not yet: That is what arrives at c. Two hooks of c then work on it, before it is kept.
    """
    from hookviz.course.exercises import judge_answer

    return judge_answer(exercise, answer)
