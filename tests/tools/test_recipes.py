"""The programs of the page of recipes run where Trainer and Lightning are installed, and print what the page shows."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.requirements import skip_or_fail

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "site" / "recipes.md"
PACKAGES = {"Trainer": ("transformers", "accelerate"), "Lightning": ("lightning",)}
"""Section of the page → the packages that its programs import."""
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
PROGRAM = re.compile(r"^```python\n(# (\w+\.py)\n.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
RUNNER = """
import pathlib, runpy, sys
for file in sys.argv[1:]:
    print(f"# {file}")
    runpy.run_path(file)
    for helper in pathlib.Path().glob("*.py"):
        sys.modules.pop(helper.stem, None)
"""
"""Runs the files one after the other in one process: to import a framework takes longer than most of them.

Each imports the helper files anew, which set the seed, so that it prints what it prints alone.
"""


def sections() -> dict[str, str]:
    """Heading → text of each section of the page."""
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


def split_output(printed: str) -> dict[str, str]:
    """File → what it printed, without the line about the time that a training took."""
    lines = [line for line in printed.splitlines(keepends=True) if not line.startswith("{'train_runtime'")]
    return dict(re.findall(r"^# (\w+\.py)\n(.*?)(?=^# \w+\.py\n|\Z)", "".join(lines), re.MULTILINE | re.DOTALL))


def test_the_page_has_programs_of_both_frameworks_and_names_the_versions_that_were_run() -> None:
    found = {name: [file for _, file, output in PROGRAM.findall(sections()[name]) if output] for name in PACKAGES}
    assert len(found["Trainer"]) == 7 and len(found["Lightning"]) == 5
    assert PAGE.read_text(encoding="utf-8").count("```python") == 16
    for name in ("transformers", "accelerate", "lightning"):
        assert f"{name} {PINS[name]}" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("section", PACKAGES)
def test_the_programs_print_what_the_page_shows(section: str, tmp_path: Path) -> None:
    missing = [name for name in PACKAGES[section] if find_spec(name) is None]
    if missing:
        skip_or_fail("recipes", f"{', '.join(missing)} not installed: make test installs the packages of the recipes")
    programs = PROGRAM.findall(sections()[section])
    for source, file, _ in programs:
        (tmp_path / file).write_text(source, encoding="utf-8")
    files = [file for _, file, output in programs if output]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(tmp_path))), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-c", RUNNER, *files]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert split_output(done.stdout) == {file: output for _, file, output in programs if output}
    assert [path.name for path in tmp_path.glob("*.html")] != []
