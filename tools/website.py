"""Make a static site of the course in build/site: ``python -m tools.website``. It works from disk and on any host."""

import json
import re
import runpy
import shutil
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import nbformat

from hookviz.course.article_index import read_index
from tools.api_pages import write_api_pages
from tools.atlas.page import write_page
from tools.handouts import make_pages
from tools.lesson_pages import link_cells, make_page, markdown_cell, read_facts
from tools.lessons import PAGE
from tools.notebook_runs import NOTEBOOKS, ROOT, run_all
from tools.project_urls import read_url, write_launch_links

SOURCE = ROOT / "site"
BUILD = Path("build") / "site"
TABLES = ("README", "glossary")
"""Markdown files in the folder of the notebooks that are also pages of the site."""
CARD = """\
:::{{container}} lesson
**[{title}](notebooks/{name}.ipynb)**

{question}

*{minutes} minutes. You need {needs}.*
:::
"""


SEARCH_BOX = """\
```{{raw}} html
<div class="look-up">
<label for="look-up-code">{label}</label>
<textarea id="look-up-code" rows="2" spellcheck="false" placeholder="{placeholder}"></textarea>
<ol aria-live="polite"></ol>
<script type="application/json">{index}</script>
</div>
```"""
"""Where a reader of the look-up page pastes a line of code; site/static/look_up.js answers."""


def main(target: Path) -> int:
    """Make the site, and print its path."""
    failed = build_site(target)
    if not failed:
        print(f"The site is in {target}: open index.html there, or put the folder on any web server.")
    return failed


def build_site(target: Path) -> int:
    """Make the site in ``target``, and return the status of Sphinx: 0 without warnings and errors."""
    # Imported here: `make lab` does not install Sphinx, and most tests of this module do not need it.
    from sphinx.cmd.build import build_main

    source = target.with_name(f"{target.name}-source")
    for folder in (source, target):
        shutil.rmtree(folder, ignore_errors=True)
    write_source(source, run_all(sorted(NOTEBOOKS.glob("*.ipynb"))))
    doctrees = str(source / ".doctrees")
    return build_main(["-q", "-W", "--keep-going", "-d", doctrees, "-b", "html", str(source), str(target)])


def write_source(source: Path, ran: Mapping[Path, Any]) -> None:
    """Write the sources for Sphinx: the pages in site/, the notebooks that ran, and the overview of the lessons."""
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__", "player.py", "handouts"))
    for folder in ("notebooks", "files"):
        (source / folder).mkdir()
    shutil.copytree(ROOT / "images", source / "images", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    make_pages(source / "extra" / "handouts")
    names = {path.name[:2]: path.name for path in ran if is_lesson(path)}
    for page in source.glob("*.md"):
        text = page.read_text(encoding="utf-8").replace("](../images/", "](images/")
        page.write_text(link_lessons(text, names), encoding="utf-8")
    for path, notebook in ran.items():
        made = make_page(notebook, path.name)
        if path.name == PAGE:
            made.cells.insert(1, markdown_cell(make_search_box()))
        nbformat.write(made, source / "notebooks" / path.name)  # type: ignore[no-untyped-call]
        shutil.copy(path, source / "files")
    for name in TABLES:
        table = (
            (NOTEBOOKS / f"{name}.md").read_text(encoding="utf-8").replace("[solutions/](solutions)", "`solutions/`")
        )
        (source / "notebooks" / f"{name}.md").write_text(link_cells(table), encoding="utf-8")
    write_page(source)
    (source / "map.md").write_text(write_overview(ran), encoding="utf-8")
    (source / "launch.md").write_text(write_launch_links(read_url("Repository")), encoding="utf-8")
    write_api_pages(source / "api")
    for name, make in runpy.run_path(str(SOURCE / "player.py"))["PAGES"].items():
        (source / name).write_text(make(), encoding="utf-8")


def make_search_box() -> str:
    """Make the box of the look-up page that finds an entry for a line of code, with the index in it."""
    index = read_index()
    texts = {name: escape(text) for name, text in index["texts"].items()}
    # A text with </script> in it would end the script.
    return SEARCH_BOX.format(**texts, index=json.dumps(index, ensure_ascii=False).replace("</", "<\\/"))


def link_lessons(text: str, names: Mapping[str, str]) -> str:
    """Link each mention of a lesson in a page, if that lesson exists."""
    return re.sub(
        r"(?m)(?<!# )\blesson (\d\d)\b",
        lambda mention: f"[{mention[0]}](notebooks/{names[mention[1]]})" if mention[1] in names else mention[0],
        text,
    )


def write_overview(ran: Mapping[Path, Any]) -> str:
    """Write the cards of the lessons."""
    lessons = {path.stem: read_facts(notebook) for path, notebook in ran.items() if is_lesson(path)}
    cards = [CARD.format(name=name, **vars(lesson)) for name, lesson in lessons.items()]
    return "\n".join([":::::{container} lessons", *cards, ":::::", ""])


def is_lesson(path: Path) -> bool:
    """Whether a notebook is a numbered lesson, not another page of the course."""
    return path.name[:2].isdigit()


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:]) if sys.argv[1:] else BUILD))
