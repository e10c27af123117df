"""Make the course as a static site in build/site: ``python -m tools.website``. It works from disk and on any host."""

import re
import runpy
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from tools.reading import facts, readable, to_cells
from tools.running import NOTEBOOKS, ROOT, run_all

SOURCE = ROOT / "site"
BUILD = Path("build") / "site"
TABLES = ("README", "glossary")
"""What lies beside the notebooks and is read on the site as well."""
CARD = """\
:::{{container}} lesson
**[{title}](notebooks/{name}.ipynb)**

{question}

*{minutes} minutes. You need {needs}.*
:::
"""


def main(target: Path) -> int:
    """Make the site, and say where it is."""
    failed = make(target)
    if not failed:
        print(f"The site is in {target}: open index.html there, or put the folder on any web server.")
    return failed


def make(target: Path) -> int:
    """Make the site in ``target``, and return what Sphinx returns: 0 where it had nothing to say."""
    # Only here: `make lab` does not install Sphinx, and the tests of what it is given need none.
    from sphinx.cmd.build import build_main

    source = target.with_name(f"{target.name}-source")
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
    write_source(source, run_all(sorted(NOTEBOOKS.glob("*.ipynb"))))
    doctrees = str(source / ".doctrees")
    return build_main(["-q", "-W", "--keep-going", "-d", doctrees, "-b", "html", str(source), str(target)])


def write_source(source: Path, ran: Mapping[Path, Any]) -> None:
    """Lay out what Sphinx reads: the pages in site/, the notebooks that ran, and the map that is made of them."""
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "player.py"))
    for folder in ("notebooks", "files"):
        (source / folder).mkdir()
    names = {path.name[:2]: path.name for path in ran if is_lesson(path)}
    for page in source.glob("*.md"):
        page.write_text(linked(page.read_text(encoding="utf-8"), names), encoding="utf-8")
    for path, notebook in ran.items():
        nbformat.write(readable(notebook, path.name), source / "notebooks" / path.name)  # type: ignore[no-untyped-call]
        shutil.copy(path, source / "files")
    for name in TABLES:
        table = (
            (NOTEBOOKS / f"{name}.md").read_text(encoding="utf-8").replace("[solutions/](solutions)", "`solutions/`")
        )
        (source / "notebooks" / f"{name}.md").write_text(to_cells(table), encoding="utf-8")
    (source / "map.md").write_text(overview(ran), encoding="utf-8")
    player = runpy.run_path(str(SOURCE / "player.py"))["first_player"]()
    (source / "player.html").write_text(player, encoding="utf-8")


def linked(text: str, names: Mapping[str, str]) -> str:
    """A page with a link wherever it speaks of a lesson that is there."""
    return re.sub(
        r"(?m)(?<!# )\blesson (\d\d)\b",
        lambda found: f"[{found[0]}](notebooks/{names[found[1]]})" if found[1] in names else found[0],
        text,
    )


def overview(ran: Mapping[Path, Any]) -> str:
    """The map of the lessons, with the menu of the site."""
    lessons = {path.stem: facts(notebook) for path, notebook in ran.items() if is_lesson(path)}
    more = [path.stem for path in ran if not is_lesson(path)]
    cards = [CARD.format(name=name, **vars(lesson)) for name, lesson in lessons.items()]
    menus = {"Lessons": [f"notebooks/{name}" for name in lessons]}
    menus["Besides"] = [*(f"notebooks/{name}" for name in more), *(f"notebooks/{name}" for name in TABLES), "lecturer"]
    return "\n".join([":::::{container} lessons", *cards, ":::::", "", *map(_menu, menus, menus.values())])


def is_lesson(path: Path) -> bool:
    """Whether a notebook is one of the numbered ones, or a page beside them."""
    return path.name[:2].isdigit()


def _menu(caption: str, pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *pages, "```", ""])


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:]) if sys.argv[1:] else BUILD))
