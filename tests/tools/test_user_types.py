"""A type checker knows the types of what a user's program reads from a trace."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROGRAM = """
import hookviz

trace = hookviz.load("pass.json")
step = trace.steps[0]
reveal_type(step)
reveal_type(trace.steps[1:])
reveal_type([step for step in trace.steps])
reveal_type(step.kind)
reveal_type(step.before)
reveal_type(step.effect)
reveal_type(step.hook)
reveal_type(trace.firings[0].on)
reveal_type(trace.findings.values[0].step)
if isinstance(step.after, hookviz.Value):
    reveal_type(step.after.norm)
if step.kind == "tensor_hok":
    pass
"""
CONFIG = """
[mypy]
strict = true
mypy_path = $MYPY_CONFIG_FILE_DIR
# Errors in hookviz itself are found by `make lint`; this program needs no types of torch.
follow_imports = silent
[mypy-torch.*]
follow_imports = skip
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What mypy says about the program."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "program.py").write_text(PROGRAM)
    (folder / "mypy.ini").write_text(CONFIG)
    (folder / "hookviz").symlink_to(ROOT / "hookviz")
    paths = {"--config-file": "mypy.ini", "--cache-dir": "cache"}
    options = [text for option, name in paths.items() for text in (option, str(folder / name))]
    # In a process of its own: mypy raises Python's recursion limit for good.
    command = [sys.executable, "-m", "mypy", *options, str(folder / "program.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stderr == ""
    return result.stdout


def revealed(report: str) -> list[str]:
    """The types that mypy reveals, in order, without the names of modules."""
    types = re.findall(r'Revealed type is "(.*)"', report)
    return [re.sub(r"\b[\w.]+\.(?=\w)", "", text) for text in types]


def test_the_fields_of_a_step_have_precise_types(report: str) -> None:
    step, some_steps, all_steps, kind, before, effect, hook, on, trouble_step, norm = revealed(report)
    assert (step, some_steps, all_steps) == ("Step", "list[Step]", "list[Step]")
    assert kind.startswith(("Literal['call'] | Literal['forward']", "Literal['call', 'forward'"))
    assert before == "Value | tuple[Value | None, ...] | None"
    assert {"'kept'", "'edited'", "'replaced'", "'ran'"} == set(re.findall(r"'\w+'", effect)) and "None" in effect
    assert (hook, on, trouble_step, norm) == ("Hook | None", "str", "int | None", "float")


def test_a_kind_of_step_that_does_not_exist_is_an_error(report: str) -> None:
    line = 1 + PROGRAM.splitlines().index('if step.kind == "tensor_hok":')
    errors = [text for text in report.splitlines() if " error: " in text]
    assert len(errors) == 1 and f"program.py:{line}: error: Non-overlapping equality check" in errors[0]
