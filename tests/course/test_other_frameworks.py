"""Programs for other frameworks run where they can, and are shown with what they printed elsewhere."""

import re

import pytest

from hookviz.course.other_frameworks import PROGRAMS, read_printed, run_program, source_of
from tests.course.reading import PAGE, read_notebook

NAMES = sorted(path.name.removesuffix(".txt") for path in PROGRAMS.iterdir() if path.name.endswith(".txt"))
LESSON = read_notebook("12_coming_from_tensorflow_or_jax.ipynb")


@pytest.mark.parametrize("name", NAMES)
def test_program_prints_here_what_was_kept_or_says_that_it_did_not_run(name: str) -> None:
    run = run_program(name)
    assert run.printed == read_printed()[name]["printed"]
    assert repr(run).startswith("Printed just now by " if run.here else "Printed elsewhere by ")
    assert run.here or "not installed here" in run._repr_html_()


CALL = re.compile(r'run_program\("(\w+)"\)')


def test_lesson_shows_each_program_that_it_runs_as_it_ran_and_names_the_others() -> None:
    text = "\n".join(cell.source for cell in LESSON.cells)
    shown = set(re.findall(r"^```python\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL))
    programs = {name for name in NAMES if source_of(name).rstrip("\n") in shown}
    assert programs == set(CALL.findall(text)) and len(programs) == len(shown) >= 4
    named = set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)))) & set(NAMES)
    on_page = {name for cell in read_notebook(PAGE).cells for name in CALL.findall(cell.source)}
    assert len(named) >= 9 and programs | named | on_page == set(NAMES)
