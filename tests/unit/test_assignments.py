"""The line that assigned a variable is found if the text of the program leaves no doubt, and only then."""

import pytest

from hookviz.analysis.assignments import Program, read_program


def program(text: str) -> Program:
    read = read_program(text)
    assert read is not None
    return read


CERTAIN = {
    "c = a * b": 1,
    "a = 1\n(x, (c, *rest)) = f(a)": 2,
    "for i in range(3):\n    x = i\n    c = a * i": 3,
    "xs = [(c := a * i) for i in range(3)]": 1,
    "c = a * b\nxs = [c for c in range(3)]": 1,
    "c = a * b\ndef f():\n    c = 2\n    return c": 1,
    "c = a * b\nc.register_hook(f)\nc.retain_grad()": 1,
}
DOUBTFUL = [
    "c = a\nc = b",
    "if flag:\n    c = a\nelse:\n    c = b",
    "c = a\nc += b",
    "with f() as c:\n    pass",
    "c = a\ndef c():\n    pass",
    "c = a\ndef f():\n    global c\n    c = b",
    "c = a * b\nc[0].mul_(2)",
    "c = a * b\nc.data = x",
    "c = zeros(3)\nmul(a, b, out=c)",
]


@pytest.mark.parametrize("text", CERTAIN)
def test_a_certain_line_is_found(text: str) -> None:
    assert program(text).module_assignment("c") == CERTAIN[text]


@pytest.mark.parametrize("text", DOUBTFUL)
def test_no_line_is_claimed_in_doubt(text: str) -> None:
    assert program(text).module_assignment("c") is None


def test_an_assignment_after_the_running_line_has_not_run() -> None:
    assert program("e.backward()\nc = a * b").module_assignment("c", before=1) is None
    assert program("c = a * b\ne.backward()").module_assignment("c", before=2) == 1


def local_line(text: str, line: int, *, known_outside: bool = False) -> int | None:
    """Return the line that assigned ``c`` in the function around ``line``."""
    read = program(text)
    scope = read.local_scope(line, "c")
    return None if scope is None else read.local_assignment("c", line, scope, known_outside=known_outside)


def test_a_function_has_its_own_variables() -> None:
    text = "c = 1\ndef f(a):\n    c = a * 2\n    c.backward()"
    assert local_line(text, 4) == 3
    assert program(text).local_scope(1, "c") is None
    assert program(text).is_in_function(4) and not program(text).is_in_function(1)


def test_an_inner_function_sees_the_variables_around_it() -> None:
    assert local_line("def f(a):\n    c = a * 2\n    def g():\n        c.backward()\n    g()", 4) == 2
    assert local_line("class K:\n    c = 1\n    def f(self):\n        c.backward()", 4) is None


@pytest.mark.parametrize(
    "text",
    [
        "def f(c):\n    c.backward()",
        "def f(a):\n    c.backward()\n    c = a",
        "def f(a):\n    c = a\n    def g():\n        nonlocal c\n        c = 2\n    c.backward()",
        "c = 1\ndef f(a):\n    if a:\n        c = a\n    c.backward()",
    ],
    ids=["parameter", "assigned later", "nonlocal", "perhaps the global variable"],
)
def test_no_local_line_is_claimed_in_doubt(text: str) -> None:
    line = next(number for number, code in enumerate(text.splitlines(), 1) if "backward" in code)
    assert local_line(text, line) is None


def test_a_local_variable_that_may_be_skipped_needs_no_rival() -> None:
    text = "def f(a):\n    for i in a:\n        c = i * 2\n    c.backward()"
    assert local_line(text, 4) == 3
    assert local_line(text, 4, known_outside=True) is None


def test_what_is_no_program_has_no_lines() -> None:
    assert read_program("c = (") is None
