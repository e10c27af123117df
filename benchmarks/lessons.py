"""Measure how long the lessons compute: ``python -m benchmarks.lessons``, or with the numbers of some lessons."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables import make_table, report
from tools.notebook_runs import run_with_solutions

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted((ROOT / "notebooks").glob("[01]*.ipynb"))


def measure(lesson: Path) -> list[str]:
    """Run a lesson in a fresh kernel, and make the row of its table."""
    with tempfile.TemporaryDirectory() as cache:
        memory, seconds = run_with_solutions(lesson, cache=Path(cache)).metadata["used"]
    return [lesson.stem, f"{seconds:.0f} s", "–" if memory is None else f"{memory} MB"]


def main(numbers: Sequence[str]) -> None:
    """Measure the lessons with these numbers; without numbers, measure all and write the table into the page, too."""
    chosen = [lesson for lesson in LESSONS if not numbers or lesson.name[:2] in numbers]
    table = make_table(("lesson", "processor time", "peak of memory"), [measure(lesson) for lesson in chosen])
    report(table, "one run each", None if numbers else Path(__file__).with_name("README.md"), "<!-- lessons -->\n")


if __name__ == "__main__":
    main(sys.argv[1:])
