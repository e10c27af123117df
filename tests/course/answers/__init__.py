"""Right and wrong answers to what the lessons ask, a file for each lesson."""

from importlib import import_module
from pathlib import Path
from typing import Any

LESSONS = [
    import_module(f"tests.course.answers.{path.stem}") for path in sorted(Path(__file__).parent.glob("lesson*.py"))
]
RIGHT: dict[str, Any] = {exercise: answer for lesson in LESSONS for exercise, answer in lesson.RIGHT.items()}
WRONG: dict[str, list[Any]] = {exercise: answers for lesson in LESSONS for exercise, answers in lesson.WRONG.items()}
"""The usual mistakes: at least three, each of which gets a reason of its own."""
