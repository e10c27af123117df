"""Questions of the lessons: checking an answer, and saying why it is wrong."""

from hookviz.analysis.questions.verdict import Verdict
from hookviz.course.exercises import check

__all__ = ["Verdict", "check"]
