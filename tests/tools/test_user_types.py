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
reveal_type(step.kind)
reveal_type(step.before)
reveal_type(step.effect)
reveal_type(step.hook)
if isinstance(step.after, hookviz.Value):
    reveal_type(step.after.norm)
if step.kind == "tensor_hok":
    pass

print(trace.steps[0].after.maximum)
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


def check_types(folder: Path) -> str:
    """Return what mypy says of the program."""
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


def test_the_fields_of_a_step_have_precise_types_and_a_wrong_kind_and_a_wrong_name_are_errors(tmp_path: Path) -> None:
    report = check_types(tmp_path)
    types = re.findall(r'Revealed type is "(.*)"', report)
    without_modules = [re.sub(r"\b[\w.]+\.(?=\w)", "", text) for text in types]
    step, kind, before, effect, hook, norm = without_modules
    assert (step, hook, norm) == ("Step", "Hook | Any", "float")
    assert kind.startswith(("Literal['call'] | Literal['forward']", "Literal['call', 'forward'"))
    assert before == "_OneOrSeveral | Any"
    assert {"'kept'", "'edited'", "'replaced'", "'ran'"} == set(re.findall(r"'\w+'", effect)) and "None" in effect
    wrong_kind, wrong_name = [text for text in report.splitlines() if " error: " in text]
    lines = PROGRAM.splitlines()
    kind_line = 1 + lines.index('if step.kind == "tensor_hok":')
    assert f"program.py:{kind_line}: error: Non-overlapping equality check" in wrong_kind
    name_line = 1 + lines.index("print(trace.steps[0].after.maximum)")
    assert f"program.py:{name_line}: error:" in wrong_name and 'has no attribute "maximum"' in wrong_name
