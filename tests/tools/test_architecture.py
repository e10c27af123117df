"""ARCHITECTURE.md lists the parts of the package and their imports correctly."""

import ast
import re
from collections import defaultdict
from collections.abc import Container
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "hookviz"
UPWARD_IMPORTS = {("trace", "autograd"), ("analysis", "autograd")}
"""The upward imports that ARCHITECTURE.md mentions."""


@cache
def imported_parts() -> dict[str, set[str]]:
    """Part → the parts that it imports, including imports for types and inside functions."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        part = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found[part] |= {name.split(".")[1] for name in names if name.startswith("hookviz.")} - {part}
    return found


def documented_parts() -> dict[str, list[str]]:
    """Part → the parts that it imports, as documented in ARCHITECTURE.md, in its order."""
    table = ARCHITECTURE.partition("## Parts")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|[^|]+\|([^|]*)\|$", table, re.MULTILINE)
    return {part: re.findall(r"`(\w+)`", imported) for part, imported in rows}


def test_documented_parts_are_the_folders_of_the_package() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert set(documented_parts()) == folders


@pytest.mark.parametrize("part", documented_parts())
def test_part_imports_exactly_the_documented_parts(part: str) -> None:
    assert {(part, other) for other in imported_parts()[part]} - UPWARD_IMPORTS == {
        (part, other) for other in documented_parts()[part]
    }


def test_every_part_imports_only_parts_listed_above_it() -> None:
    order = list(documented_parts())
    assert all(order.index(other) < order.index(part) for part in order for other in documented_parts()[part])


def test_architecture_has_at_most_fifteen_parts() -> None:
    assert len(documented_parts()) <= 15


def package_modules() -> dict[str, Path]:
    """Module → its file."""
    paths = [path for path in PACKAGE.rglob("*.py") if "__pycache__" not in path.parts]
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths)
    return {name.removesuffix(".__init__"): path for name, path in zip(names, paths, strict=True)}


def imported_modules(path: Path, modules: Container[str]) -> set[str]:
    """The modules of the package that a file imports, including imports for types and inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            each = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in modules else node.module for name in each}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in modules}


def test_no_import_cycle_has_more_than_two_files() -> None:
    files = package_modules()
    direct_imports = {name: imported_modules(path, files) - {name} for name, path in files.items()}
    all_imports = {name: transitive_imports(name, direct_imports) for name in files}
    cycles = {
        frozenset(other for other in all_imports[name] if name in all_imports[other])
        for name in files
        if name in all_imports[name]
    }
    assert [sorted(cycle) for cycle in cycles if len(cycle) > 2] == []


def transitive_imports(name: str, direct_imports: dict[str, set[str]]) -> set[str]:
    """All modules that a module imports, directly or indirectly."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = direct_imports[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def test_every_file_named_in_the_architecture_exists() -> None:
    files = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|js|css|json))`", ARCHITECTURE))
    assert len(files) > 30
    assert [name for name in files if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []


def limits() -> list[tuple[str, str, str]]:
    """(value, file, constant) for each limit in the map."""
    table = ARCHITECTURE.partition("## Limits")[2].partition("\n## ")[0]
    return re.findall(r"^\|[^|]+\| ([\d,.]+) \| `([\w/.]+)` `(\w+)` \|$", table, re.MULTILINE)


@pytest.mark.parametrize(("value", "file", "constant"), limits())
def test_a_limit_in_the_map_is_the_constant_of_the_file(value: str, file: str, constant: str) -> None:
    module = import_module("hookviz." + file.removesuffix(".py").replace("/", "."))
    assert getattr(module, constant) == float(value.replace(",", ""))


def test_the_map_has_every_row_of_its_limits() -> None:
    table = ARCHITECTURE.partition("## Limits")[2].partition("\n## ")[0]
    assert len(limits()) == table.count("\n|") - 2
