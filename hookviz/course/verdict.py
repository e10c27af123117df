"""The verdict on an answer to an exercise or a question."""

from dataclasses import dataclass
from html import escape

from hookviz.support.messages import _


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, and the reason."""

    exercise: str
    """The number of the exercise, such as ``02.1``, or of the question of a quiz."""
    right: bool
    """Whether the answer is right."""
    reason: str
    """The reason in a sentence or two, which never gives the answer away."""
    of_quiz: bool = False
    """Whether the answer belongs to a question of a ``Quiz``, not to an exercise of a lesson."""
    credit: float = 0.0
    """What the answer is worth, from 0 to 1, if that is not 1 for a right answer and 0 for a wrong one."""

    @property
    def score(self) -> float:
        """What the answer is worth: 1 if it is right and 0 if it is wrong, unless it has a ``credit`` of its own."""
        return self.credit or float(self.right)

    def __repr__(self) -> str:
        asked = (_("Question {number}") if self.of_quiz else _("Exercise {number}")).format(number=self.exercise)
        return (_("{asked}: right. {reason}") if self.right else _("{asked}, not yet: {reason}")).format(
            asked=asked, reason=self.reason
        )

    def _repr_html_(self) -> str:
        color = "#15803d" if self.right else "#b45309"
        style = f"border-left: 4px solid {color}; padding-left: 0.6em; white-space: pre-line"
        return f'<p style="{style}">{escape(repr(self))}</p>'
