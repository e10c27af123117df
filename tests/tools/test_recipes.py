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


def test_the_page_names_the_versions_that_were_run() -> None:
    for name in ("transformers", "accelerate", "lightning"):
        assert f"{name} {PINS[name]}" in PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("section", PACKAGES)
def test_the_program_prints_what_the_page_shows(section: str, tmp_path: Path) -> None:
    missing = [name for name in PACKAGES[section] if find_spec(name) is None]
    if missing:
        skip_or_fail("recipes", f"{', '.join(missing)} not installed: make test installs the trainers")
    _, text = PAGE.read_text(encoding="utf-8").split(f"\n## {section}\n")
    [(source, file, output)] = PROGRAM.findall(text.partition("\n## ")[0])
    (tmp_path / file).write_text(source, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, file], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines(keepends=True) if not line.startswith("{'train_runtime'")]
    assert "".join(lines) == output
    assert [path.name for path in tmp_path.rglob("hookviz/*.html")] == ["steps_3-4.html"]
