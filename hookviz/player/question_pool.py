"""The questions of a player: runs of one program share the questions that they have in common."""

from collections.abc import Mapping, Sequence

from hookviz.analysis.questions.prediction import Question as AskedQuestion
from hookviz.analysis.questions.prediction import make_questions
from hookviz.player.payload import Question
from hookviz.trace import Step


class QuestionPool:
    """Collects questions, and gives each an index: the key under which the browser keeps the answer."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def add(self, asked: AskedQuestion, run: int = 0, hook: int | None = None) -> int:
        """Add a question about a run; ``hook`` is the index of a hook whose source is shown with it."""
        question: Question = {"text": asked["text"], "run": run}
        if "answer" in asked:
            question["answer"] = asked["answer"]
            question["mistakes"] = [(wrong, why) for wrong, why in asked["reasons"]]
        else:
            question["choices"] = list(asked["choices"])
            question["right"] = asked["right"]
            question["reasons"] = list(asked["reasons"])
        # If the question is which hook is next, the source would give the answer.
        if hook is not None and ("answer" in asked or "source" in asked):
            question["hook"] = hook
        self.questions.append(question)
        return len(self.questions) - 1

    def add_all(
        self, steps: Sequence[Step], firings: Sequence[Step] | None, hooks: Mapping[int, int]
    ) -> dict[str, list[int]]:
        """Make the questions about the first run, and add them; return step → the indices of its questions.

        Args:
            steps: the steps of the run.
            firings: those in which a hook ran; None finds them among ``steps``.
            hooks: hook row → index in ``Content.hooks``.
        """
        asked: dict[str, list[int]] = {}
        for step, question in make_questions(steps, firings).items():
            row = steps[step].row.hook
            asked[str(step)] = [self.add(question, hook=None if row is None else hooks[row])]
        return asked
