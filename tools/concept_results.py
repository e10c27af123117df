"""What a class has learned, by the concept test: ``python -m tools.concept_results answers/*.json``.

Each file is one that ``hookviz.course.report`` wrote for one person. Nobody's name is read.
"""

import json
import re
import statistics
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.translation.message_sources import NOTEBOOKS

KEY = NOTEBOOKS / "solutions" / "concept_test.md"
FEW = 10
"""With fewer people than this, a mean says little."""


@dataclass(frozen=True)
class Sheet:
    """What one person answered in one form."""

    form: str
    """``A``, the questions with odd numbers, or ``B``, those with even ones."""
    answers: str
    """A letter for each question, or ``-``."""

    def mark(self, right: Mapping[int, str]) -> dict[int, bool]:
        """Number of a question → whether it is right."""
        first = 1 if self.form == "A" else 2
        numbers = range(first, 31, 2)
        return {number: letter == right[number] for number, letter in zip(numbers, self.answers, strict=True)}


def read_key(text: str) -> dict[int, str]:
    """Read the right letters from the page of the answers."""
    return {int(number): letter for number, letter in re.findall(r"^\| (\d+) \| ([A-D]) \|", text, re.MULTILINE)}


def read_sheets(paths: Iterable[Path]) -> list[dict[str, Sheet]]:
    """Read the sheets of everybody who did both tests: for each person ``before`` and ``after``."""
    people = []
    for path in paths:
        tests = json.loads(path.read_text(encoding="utf-8")).get("tests", {})
        sheets = {key[2:]: Sheet(key[0], noted["answers"]) for key, noted in tests.items()}
        if {"before", "after"} <= set(sheets):
            people.append(sheets)
    return people


def describe(people: list[dict[str, Sheet]], right: Mapping[int, str]) -> str:
    """Say how many points people had before and after, what share of what they could gain they gained, and where."""
    if not people:
        return "Nobody did the test both before and after the course."
    points = {moment: [sum(person[moment].mark(right).values()) for person in people] for moment in ("before", "after")}
    lines = [f"{len(people)} people did both tests, 15 questions each."]
    for moment, scores in points.items():
        spread = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
        lines.append(f"{moment}: {statistics.mean(scores):.1f}{spread} points")
    before, after = (statistics.mean(scores) for scores in points.values())
    if before < 15:
        lines.append(f"gain: {(after - before) / (15 - before):.0%} of what could be gained")
    if len(people) < FEW:
        lines.append(f"Fewer than {FEW} people: do not draw a conclusion from a mean.")
    lines.append("question: right before → right after")
    for number in right:
        shares = (_share(people, moment, number, right) for moment in points)
        lines.append(f"{number}: {' → '.join(shares)}")
    return "\n".join(lines)


def _share(people: list[dict[str, Sheet]], moment: str, number: int, right: Mapping[int, str]) -> str:
    """The share of those who had a question at that moment and answered it right."""
    marks = [marked[number] for person in people if number in (marked := person[moment].mark(right))]
    return f"{statistics.mean(marks):.0%} of {len(marks)}" if marks else "not asked"


def main(files: list[str]) -> None:
    """Print the results of these files."""
    print(describe(read_sheets(map(Path, files)), read_key(KEY.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main(sys.argv[1:])
