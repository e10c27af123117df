"""The engine of lesson 10 agrees with torch on gradients and on the order of hooks.

That the comparison finds faulty engines, the wrong answers to exercises 10.3 to 10.7 show.
"""

import sys
from typing import Any

import pytest

from hookviz.course import check
from hookviz.course.judges import limit_lines
from hookviz.course.random_graphs import SmallEngine, find_disagreement
from tests.course.answers.lesson10 import never_takes_out
from tests.course.reading import read_notebook, read_solution

LESSON = "10_under_the_hood.ipynb"
PARTS = {"10.1": "register", "10.2": "through", "10.3": "Node", "10.4": "Value", "10.6": "backward", "10.7": "Module"}
"""The exercises that ask for a part of the engine."""


def engine_cells(notebook: Any) -> str:
    """The cells that make up the engine."""
    return "\n".join(cell.source for cell in notebook.cells if "engine" in cell.metadata.get("tags", ()))


SOURCE = engine_cells(read_solution(LESSON))


def names_in(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace


def small_engine() -> SmallEngine:
    """The engine of the lesson."""
    names = names_in(SOURCE)
    return SmallEngine(value=names["Value"], backward=names["backward"])


def test_engine_of_the_lesson_has_all_parts_and_the_student_gets_each_with_a_gap() -> None:
    assert all(callable(names_in(SOURCE)[name]) for name in PARTS.values())
    gaps = engine_cells(read_notebook(LESSON))
    assert gaps.count("pass  # your lines") == 8 and "BEGIN" not in gaps
    names = names_in(gaps)
    for exercise, name in PARTS.items():
        assert not check(exercise, names[name]).right


@pytest.mark.parametrize("make", [small_engine, SmallEngine], ids=["of the lesson", "of the judge"])
def test_engine_agrees_with_torch_on_gradients_and_on_the_order_of_hooks(make: Any) -> None:
    assert find_disagreement(make(), range(100)) is None


def test_a_loop_that_runs_a_node_again_and_again_is_stopped_and_tracing_is_put_back() -> None:
    before = sys.gettrace()
    assert "has not finished" in check("10.6", never_takes_out).reason
    assert sys.gettrace() is before and limit_lines(len, 1) is len
