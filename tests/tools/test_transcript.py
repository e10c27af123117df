"""What the page on the command line shows of each command is what it prints.

``python -m tests.tools.test_transcript`` writes the output of today into the page.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hookviz.command_line.command_table import COMMANDS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "site" / "command_line.md"
_BLOCK = re.compile(r"(?ms)(?<=^```console\n)\$ .*?(?=^```$)")
_HOOKVIZ = 'hookviz() { "$PYTHON" -m hookviz "$@"; }\n'


def run_commands(page: str, folder: Path) -> str:
    """Return the page with what its commands print in ``folder``, where its script stands as ``train.py``."""
    [script] = re.findall(r"(?ms)^```python\n(import torch$.*?)^```$", page)
    (folder / "train.py").write_text(script, encoding="utf-8")
    return _BLOCK.sub(lambda block: "".join(_run(line, folder) for line in _list_commands(block[0])), page)


def _list_commands(block: str) -> list[str]:
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def _run(command: str, folder: Path) -> str:
    variables = {"PYTHON": sys.executable, "COLUMNS": "100", "HOOKVIZ_LANGUAGE": "en"}
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        ["bash", "-c", f"exec 2>&1\n{_HOOKVIZ}{command}"],
        cwd=folder,
        env=os.environ | variables | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return f"$ {command}\n{done.stdout}"


@pytest.mark.slow
def test_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    commands = [line.split()[1] for block in _BLOCK.findall(page) for line in _list_commands(block)]
    assert {*COMMANDS} <= {*commands}
    assert run_commands(page, tmp_path) == page, "python -m tests.tools.test_transcript writes the page anew"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        PAGE.write_text(run_commands(PAGE.read_text(encoding="utf-8"), Path(name)), encoding="utf-8")
