"""ARCHITECTURE.md is a map of the package on one page, and AGENTS.md one for agents; what they name is there."""

import re
from pathlib import Path

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
