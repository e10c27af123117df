"""The questions of a player: runs of one program share the questions that they have in common."""

from collections.abc import Mapping

from hookviz.analysis.questions.prediction import Question as AskedQuestion
from hookviz.player.payload import Question


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

    def add_all(self, asked: Mapping[int, AskedQuestion], hooks: Mapping[int, int]) -> dict[str, list[int]]:
        """Add the questions about the first run; return step → the indices of its questions."""
        return {str(step): [self.add(question, hook=hooks.get(step))] for step, question in asked.items()}
