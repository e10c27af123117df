"""The map shows the parts and the arrows that there are."""

import ast
import re
from collections import defaultdict
from collections.abc import Container
from functools import cache
from importlib import import_module
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


def test_the_map_has_at_most_a_dozen_parts() -> None:
    assert len(parts()) <= 12


def modules() -> dict[str, Path]:
    """Module → its file."""
    paths = [path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts]
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return {name.removesuffix(".__init__"): path for name, path in zip(names, paths, strict=True)}


def imported_modules(path: Path, known: Container[str]) -> set[str]:
    """The modules of the package that a file imports, those for types and those in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            each = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in known else node.module for name in each}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in known}


def test_no_circle_of_imports_has_more_than_two_files() -> None:
    files = modules()
    leads = {name: imported_modules(path, files) - {name} for name, path in files.items()}
    reach = {name: reached(name, leads) for name in files}
    circles = {
        frozenset(other for other in reach[name] if name in reach[other]) for name in files if name in reach[name]
    }
    assert [sorted(circle) for circle in circles if len(circle) > 2] == []


def reached(name: str, leads: dict[str, set[str]]) -> set[str]:
    """All modules that a module imports, by however many others."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = leads[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_every_file_that_the_map_names_is_there() -> None:
    files = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|js|css|json))`", MAP))
    assert len(files) > 30
    assert [name for name in files if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []


def limits() -> list[tuple[str, str, str]]:
    """(value, file, constant) for each limit in the map."""
    table = MAP.partition("## Limits")[2].partition("\n## ")[0]
    return re.findall(r"^\|[^|]+\| ([\d,.]+) \| `([\w/.]+)` `(\w+)` \|$", table, re.MULTILINE)


@pytest.mark.parametrize(("value", "file", "constant"), limits())
def test_a_limit_in_the_map_is_the_constant_of_the_file(value: str, file: str, constant: str) -> None:
    module = import_module("hookviz." + file.removesuffix(".py").replace("/", "."))
    assert getattr(module, constant) == float(value.replace(",", ""))


def test_the_map_has_every_row_of_its_limits() -> None:
    table = MAP.partition("## Limits")[2].partition("\n## ")[0]
    assert len(limits()) == table.count("\n|") - 2
