"""The examples in the docstrings of the tools are right."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

from tests.requirements import require_site

ROOT = Path(__file__).parents[2]
TEXTS = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tools").rglob("*.py"))}


@pytest.mark.parametrize("path", [path for path, text in TEXTS.items() if ">>> " in text], ids=lambda path: path.stem)
def test_examples_are_right(path: Path) -> None:
    if "from sphinx" in TEXTS[path]:
        require_site()
    found = doctest.testmod(import_module(".".join(path.relative_to(ROOT).with_suffix("").parts)))
    assert found.attempted and not found.failed
