"""Questions of the lessons: checking an answer, and saying why it is wrong."""

from hookviz.quiz.check import check
from hookviz.quiz.verdict import Verdict

__all__ = ["Verdict", "check"]
