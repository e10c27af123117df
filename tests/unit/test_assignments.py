"""The line that assigned a variable is found if the text of the program leaves no doubt, and only then."""

from textwrap import dedent

import pytest

from hookviz.analysis.assignments import Program, read_program


def program(text: str) -> Program:
    read = read_program(dedent(text).lstrip("\n"))
    assert read is not None
    return read


CERTAIN = {
    "a plain assignment": ("c = a * b", 1),
    "an assignment with a type": ("c: Tensor = a * b", 1),
    "several targets": ("x = c = a * b", 1),
    "a tuple of targets": ("a = 1\n(x, (c, *rest)) = f(a)", 2),
    "the first line of a long statement": ("a = 1\nc = f(\n    a,\n)", 2),
    "inside a loop": ("for i in range(3):\n    x = i\n    c = a * i", 3),
    "inside a with statement": ("with no_grad():\n    c = a * b", 2),
    "inside an if": ("if flag:\n    c = a * b", 2),
    "a walrus": ("if (c := a * b) is not None:\n    pass", 1),
    "a walrus in a comprehension": ("xs = [(c := a * i) for i in range(3)]", 1),
    "the variable of a comprehension is another one": ("c = a * b\nxs = [c for c in range(3)]", 1),
    "the parameter of a lambda is another one": ("c = a * b\nf = lambda c: c + 1", 1),
    "the local variable of a function is another one": ("c = a * b\ndef f():\n    c = 2\n    return c", 1),
    "the attribute of a class is another one": ("c = a * b\nclass K:\n    c = 2", 1),
    "attributes are no variables": ("c = a * b\nx.c = 2\nc.grad = None", 1),
    "a hook changes nothing": ("c = a * b\nc.register_hook(f)\nc.retain_grad()", 1),
    "requires_grad_ keeps the data": ("c = tensor(1.0)\nc.requires_grad_()", 1),
}
DOUBTFUL = {
    "nothing assigns it": "x = 1",
    "two assignments": "c = a\nc = b",
    "one of two branches": "if flag:\n    c = a\nelse:\n    c = b",
    "an augmented assignment": "c = a\nc += b",
    "the variable of a loop": "for c in xs:\n    pass",
    "with ... as": "with f() as c:\n    pass",
    "deleted": "c = a\ndel c",
    "an import": "import c",
    "an import under another name": "c = a\nfrom m import x as c",
    "a function": "c = a\ndef c():\n    pass",
    "a class": "c = a\nclass c:\n    pass",
    "an exception": "c = a\ntry:\n    f()\nexcept E as c:\n    pass",
    "a pattern": "c = a\nmatch x:\n    case [c, *_]:\n        pass",
    "the rest of a pattern": "c = a\nmatch x:\n    case {'k': 1, **c}:\n        pass",
    "a function assigns the global variable": "c = a\ndef f():\n    global c\n    c = b",
    "changed in place": "c = a * b\nc.mul_(2)",
    "changed through a view": "c = a * b\nc[0].mul_(2)",
    "an item is assigned": "c = a * b\nc[0] = 1",
    "its data are replaced": "c = a * b\nc.data = x",
    "the output of a function": "c = zeros(3)\nmul(a, b, out=c)",
    "declared, not assigned": "c: Tensor",
    "a starred loop variable": "for x, *c in xs:\n    pass",
}


@pytest.mark.parametrize("case", CERTAIN)
def test_a_certain_line_is_found(case: str) -> None:
    text, line = CERTAIN[case]
    assert program(text).module_assignment("c") == line


@pytest.mark.parametrize("case", DOUBTFUL)
def test_no_line_is_claimed_in_doubt(case: str) -> None:
    assert program(DOUBTFUL[case]).module_assignment("c") is None


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
        "def f(a):\n    c = a\n    c = a * 2\n    c.backward()",
        "def f(a):\n    c.backward()\n    c = a",
        "def f(a):\n    c = a\n    def g():\n        nonlocal c\n        c = 2\n    c.backward()",
        "c = 1\ndef f(a):\n    if a:\n        c = a\n    c.backward()",
    ],
    ids=["parameter", "assigned twice", "assigned later", "nonlocal", "perhaps the global variable"],
)
def test_no_local_line_is_claimed_in_doubt(text: str) -> None:
    line = next(number for number, code in enumerate(text.splitlines(), 1) if "backward" in code)
    assert local_line(text, line) is None


def test_a_local_variable_that_may_be_skipped_needs_no_rival() -> None:
    text = "def f(a):\n    for i in a:\n        c = i * 2\n    c.backward()"
    assert local_line(text, 4) == 3
    assert local_line(text, 4, known_outside=True) is None


@pytest.mark.parametrize(
    "text", ["c = (", "%matplotlib inline", "\0", "(" * 5000], ids=["cut", "magic", "null", "deep"]
)
def test_what_is_no_program_has_no_lines(text: str) -> None:
    assert read_program(text) is None
