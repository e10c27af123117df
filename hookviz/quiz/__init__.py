"""Questions of the lessons: checking an answer, and saying why it is wrong."""

from hookviz.quiz.check import Verdict, check

__all__ = ["Verdict", "check"]
