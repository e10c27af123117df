"""ARCHITECTURE.md is a map of the package on one page, and AGENTS.md one for agents; what they name is there."""

import re
from importlib.util import find_spec
from pathlib import Path

import grimp
import networkx

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
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


def test_the_maps_are_one_page_each_with_some_twenty_places_to_start() -> None:
    rows = ARCHITECTURE.partition("## Start here")[2].count("\n|") - 2
    assert rows <= 22 and len(ARCHITECTURE.split()) <= 1_250 and len(GUIDE.split()) <= 500


def test_commands_and_files_of_the_guide_for_agents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([\w./]+)", GUIDE))
    assert len(targets) > 5
    assert [name for name in targets if not re.search(rf"(?m)^(?:[^#\t:]* )?{re.escape(name)}[ :]", makefile)] == []
    modules = set(re.findall(r"python -m ([\w.]+)", GUIDE)) - {"pytest"}
    assert modules and [module for module in modules if find_spec(module) is None] == []
    paths = set(re.findall(r"[\w.-]*[\w*]/[\w./*-]*|[\w.-]+\.md\b", GUIDE))
    assert len(paths) > 20
    assert [path for path in paths if not path.startswith(".venv") and not [*ROOT.glob(path)]] == []


def test_no_import_cycle_has_more_than_two_files() -> None:
    graph = grimp.build_graph("hookviz")
    pairs = [(name, other) for name in graph.modules for other in graph.find_modules_directly_imported_by(name)]
    cycles = networkx.strongly_connected_components(networkx.DiGraph(pairs))
    assert len(pairs) > 500 and [sorted(cycle) for cycle in cycles if len(cycle) > 2] == []
