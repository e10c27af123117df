"""The case file of the sick network stands as a whole in lesson 09; the lessons before it add their own row or none."""

import re

from tests.course.reading import read_notebook
from tests.course.test_notebooks import LESSONS, prose

ROW = re.compile(r"^\| (0\d) \|(?: .+ \|)+$", re.MULTILINE)
LAST = "09"


def test_lesson_09_has_a_row_of_each_lesson_before_it_and_the_others_at_most_their_own() -> None:
    rows = {path.name[:2]: ROW.findall(prose(read_notebook(path.name))) for path in LESSONS}
    assert rows.pop(LAST) == [f"{number:02}" for number in range(1, int(LAST))]
    assert [number for number, shown in rows.items() if not {*shown} <= {number}] == []
