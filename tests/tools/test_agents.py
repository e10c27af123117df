"""AGENTS.md is short, and what it names is there."""

import re
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_guide_for_agents_is_one_page() -> None:
    assert len(GUIDE.split()) <= 500


def test_commands_and_files_of_the_guide_for_agents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([\w./]+)", GUIDE))
    assert len(targets) > 5
    assert [
        target for target in targets if not re.search(rf"(?m)^(?:[^#\t:]* )?{re.escape(target)}[ :]", makefile)
    ] == []
    modules = set(re.findall(r"python -m ([\w.]+)", GUIDE)) - {"pytest"}
    assert modules and [module for module in modules if find_spec(module) is None] == []
    paths = set(re.findall(r"[\w.-]*[\w*]/[\w./*-]*|[\w.-]+\.md\b", GUIDE))
    assert len(paths) > 20
    assert [path for path in paths if not path.startswith(".venv") and not [*ROOT.glob(path)]] == []
