"""The case file of the sick network says the same in every lesson, until a lesson has found a cause."""

import re
from collections import defaultdict

import nbformat

from tests.course.test_notebooks import LESSONS

ROW = re.compile(r"^\| (0\d) \| (.+?) \| (.+) \| (.+) \|$", re.MULTILINE)
Rows = dict[tuple[str, int], list[tuple[str, str]]]


def read_rows() -> Rows:
    """(Lesson of a row, its number among that lesson's rows) → (what we saw, what it may mean) in later lessons."""
    rows: Rows = defaultdict(list)
    for path in LESSONS:
        lesson = path.name[:2]
        for cell in nbformat.read(path, as_version=4).cells:
            count: dict[str, int] = defaultdict(int)
            for row_lesson, _, saw, means in ROW.findall(cell.source if cell.cell_type == "markdown" else ""):
                if row_lesson < lesson:
                    rows[row_lesson, count[row_lesson]].append((saw, means))
                count[row_lesson] += 1
    return rows


def test_what_was_seen_stays_and_what_it_may_mean_changes_once_at_most() -> None:
    rows = read_rows()
    assert rows
    for key, versions in rows.items():
        assert len({saw for saw, _ in versions}) == 1, key
        meanings = [means for _, means in versions]
        found = meanings[-1]
        assert set(meanings) <= {"?", found}, key
        assert meanings == sorted(meanings, key=lambda means: means == found), key
