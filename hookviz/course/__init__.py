"""The exercises of the lessons: an answer is checked, and what is wrong is said. Loaded when the first answer comes."""

from typing import Any

from hookviz.analysis.questions.answer_verdict import Verdict

__all__ = ["Verdict", "check"]


def check(exercise: str, answer: Any) -> Verdict:
    """Whether ``answer`` answers ``exercise``, and if not, why not.

    Args:
        exercise: its number in the lesson, such as ``"02.1"``.
        answer: a number, a name or a function, as the exercise asks; None for no answer yet.

    Raises:
        ValueError: there is no such exercise.

    >>> check("02.1", 8)
    Exercise 02.1, not yet: That is what arrives at c. Two hooks of c then work on it, before it is kept.
    """
    from hookviz.course.exercises import judged

    return judged(exercise, answer)
