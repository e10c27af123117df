"""ARCHITECTURE.md is a map of the package on one page, and true."""

import ast
import re
from collections.abc import Container
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "hookviz"


def test_documented_parts_are_the_folders_of_the_package() -> None:
    table = ARCHITECTURE.partition("## Parts")[2].partition("\n## ")[0]
    documented = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert sorted(documented) == sorted(folders) and len(folders) <= 16


def test_every_file_named_in_the_architecture_exists() -> None:
    files = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|js|css|json))`", ARCHITECTURE))
    assert len(files) > 25
    assert [name for name in files if not ((PACKAGE / name).exists() or (ROOT / name).exists())] == []


def test_the_map_is_one_page_with_twelve_places_to_start() -> None:
    rows = ARCHITECTURE.partition("## Start here")[2].count("\n|") - 2
    assert rows == 12 and len(ARCHITECTURE.split()) <= 1_250


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
