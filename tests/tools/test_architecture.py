"""The map shows the parts and the arrows that there are."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAP = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "hookviz"
UPWARD = {("trace", "autograd")}
"""The arrows up that the map names."""


@cache
def arrows() -> dict[str, set[str]]:
    """Part → the parts that it imports, those for types and those in functions too."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found[part] |= {name.split(".")[1] for name in names if name.startswith("hookviz.")} - {part}
    return found


def parts() -> dict[str, list[str]]:
    """Part → the parts that it imports, as the map has them, in its order."""
    table = MAP.partition("## Parts")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\|([^|]*)\|$", table, re.MULTILINE)
    return {part: re.findall(r"`(\w+)`", imported) for part, imported in rows}


def test_the_parts_are_the_folders() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert set(parts()) == folders


@pytest.mark.parametrize("part", parts())
def test_a_part_imports_what_the_map_says(part: str) -> None:
    assert {(part, other) for other in arrows()[part]} - UPWARD == {(part, other) for other in parts()[part]}


def test_every_arrow_leads_to_a_part_above_in_the_map() -> None:
    order = list(parts())
    assert all(order.index(other) < order.index(part) for part in order for other in parts()[part])


def test_every_file_that_the_map_names_is_there() -> None:
    files = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|js|css|json))`", MAP))
    assert len(files) > 30
    assert [name for name in files if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []
