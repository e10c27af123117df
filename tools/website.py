"""Make a static site of the course in build/site: ``python -m tools.website``. It works from disk and on any host.

The English site is in the folder itself, and each other language has a folder of its own in it.
"""

import argparse
import re
import runpy
import shutil
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import nbformat

from atlas.page import write_page
from hookviz.command_line.entry_point import build_parser
from hookviz.support.messages.languages import LANGUAGES, speaking
from tools.handouts import make_pages
from tools.lesson_pages import link_cells, make_page, read_facts
from tools.lesson_start import launch_addresses, read_repository
from tools.lessons import folder_of
from tools.notebook_runs import run_all
from tools.questions import write_pages
from tools.translation.editions import Edition
from tools.translation.message_sources import PAGES, ROOT
from tools.translation.translated import translatable, translated

SOURCE = ROOT / "site"
BUILD = Path("build") / "site"
NOT_SERVED = ("__pycache__", "player.py", "chinese_search.js", "handouts")
"""What the site is made with, but does not consist of."""
TABLES = ("README", "glossary")
"""Markdown files in the folder of the notebooks that are also pages of the site."""
ENGLISH_ONLY = {
    "api/index": translatable("API"),
    "atlas": translatable("Atlas of hooks"),
    "guide": translatable("Guide"),
    "findings": translatable("Findings"),
    "recording": translatable("Recording"),
    "plots": translatable("Plots"),
    "command_line": translatable("In a terminal and in tests"),
    "agents": translatable("For coding agents"),
    "sharing": translatable("Sharing"),
    "installing": translatable("Installing"),
    "promises": translatable("Promises"),
}
"""Pages that stand for what other languages do not have: the reference is made of docstrings, the atlas of programs,
and the guide with its pages is not translated."""
COMMANDS = """\
# Command line

`hookviz` records a script without a change to it, and shows saved traces: no notebook is needed.

```console
hookviz run --record pass.json --page pass.html --keep 10 train.py --lr 0.1
hookviz findings pass.json
```
"""
CARD = """\
:::{{container}} lesson
**[{title}](notebooks/{name}.ipynb)**

{question}

*{facts}*
:::
"""


REFERENCE = re.compile(r"\[(?P<text>(?:`[^`]*`|[^\]`])+)\]\((?P<page>api/[\w/]+)\.rst\)")
"""A link to a page of the reference."""


def main(arguments: list[str]) -> int:
    """Make the site, and print its path."""
    parser = argparse.ArgumentParser(prog="python -m tools.website", description="Make the course as a static site.")
    parser.add_argument("target", nargs="?", type=Path, default=BUILD)
    parser.add_argument(
        "--run",
        metavar="NUMBERS",
        help="run only these lessons of the editions in other languages, such as 01,02; the others get no outputs",
    )
    options = parser.parse_args(arguments)
    target: Path = options.target
    failed = build_site(target, None if options.run is None else options.run.split(","))
    if not failed:
        print(f"The site is in {target}: open index.html there, or put the folder on any web server.")
    return failed


def build_site(target: Path, numbers: Collection[str] | None = None) -> int:
    """Make the site in all languages in ``target``, and return the status of Sphinx: 0 without warnings and errors.

    Args:
        target: the folder of the site; what is in it is removed.
        numbers: the lessons that run in other languages than English, or None for all; the English ones all run.
    """
    shutil.rmtree(target, ignore_errors=True)
    # All run before Sphinx starts: a part of its theme switches on the log of every package.
    notebooks = {language: run_notebooks(language, None if language == "en" else numbers) for language in LANGUAGES}
    status = 0
    for language, ran in notebooks.items():
        with speaking(language):
            source = target.with_name(f"{target.name}-source-{language}")
            status = build_edition(source, target if language == "en" else target / language, language, ran) or status
    return status


def run_notebooks(language: str, numbers: Collection[str] | None) -> dict[Path, Any]:
    """Run the notebooks of one language, or only the lessons with these numbers; return all."""
    paths = sorted(folder_of(language).glob("*.ipynb"))
    ran = run_all(path for path in paths if numbers is None or path.name[:2] in numbers)
    return {path: ran[path] if path in ran else nbformat.read(path, as_version=4) for path in paths}  # type: ignore[no-untyped-call]


def build_edition(source: Path, target: Path, language: str, ran: Mapping[Path, Any]) -> int:
    """Make the site in one language, which hookviz speaks now, by way of the folder ``source``."""
    # Imported here: `make lab` does not install Sphinx, and most tests of this module do not need it.
    from sphinx.cmd.build import build_main

    shutil.rmtree(source, ignore_errors=True)
    write_source(source, ran, language)
    doctrees = str(source / ".doctrees")
    return build_main(["-q", "-W", "--keep-going", "-d", doctrees, "-b", "html", str(source), str(target)])


def write_source(source: Path, ran: Mapping[Path, Any], language: str = "en") -> None:
    """Write the sources for Sphinx: the pages in site/, the notebooks that ran, and the overview of the lessons."""
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns(*NOT_SERVED))
    for folder in ("notebooks", "files"):
        (source / folder).mkdir()
    shutil.copytree(ROOT / "images", source / "images", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    lessons = {path: notebook for path, notebook in ran.items() if is_lesson(path)}
    make_pages(source / "extra" / "handouts", lessons, language)
    if language != "en":
        translate_pages(source, language)
    write_pages(source, folder_of(language), language)
    names = {path.name[:2]: path.name for path in lessons}
    for page in source.glob("*.md"):
        text = page.read_text(encoding="utf-8").replace("](../images/", "](images/")
        page.write_text(link_lessons(text, names), encoding="utf-8")
    for path, notebook in ran.items():
        made = make_page(notebook, path.name, language)
        if is_lesson(path):
            made.metadata["myst"] = {"html_meta": {"description": read_facts(notebook).question.replace("`", "")}}
        nbformat.write(made, source / "notebooks" / path.name)  # type: ignore[no-untyped-call]
        shutil.copy(path, source / "files")
    for name in TABLES:
        table = (folder_of(language) / f"{name}.md").read_text(encoding="utf-8")
        table = table.replace("[solutions/](solutions)", "`solutions/`").replace("](../../images/", "](../images/")
        (source / "notebooks" / f"{name}.md").write_text(link_cells(table), encoding="utf-8")
    if language == "en":
        write_page(source)
        (source / "api" / "command_line.md").write_text(write_commands(), encoding="utf-8")
    (source / "map.md").write_text(write_overview(ran, language), encoding="utf-8")
    (source / "launch.md").write_text(write_launch_links(), encoding="utf-8")
    shutil.copy(ROOT / "hookviz" / "command_line" / "for_agents.md", source)
    for name, make in runpy.run_path(str(SOURCE / "player.py"))["PAGES"].items():
        (source / name).write_text(make(), encoding="utf-8")


TO_ENGLISH_ONLY = re.compile(rf"\]\(({'|'.join(ENGLISH_ONLY)})\.md#[\w-]+\)")
"""A link to a heading of a page that another language lacks: what stands for it has no such heading."""


def translate_pages(source: Path, language: str) -> None:
    """Translate the pages of the site in ``source``; what there is in English alone is a page that leads to it."""
    edition = Edition(language)
    for name in PAGES:
        page = source / f"{name}.md"
        text = TO_ENGLISH_ONLY.sub("](\\1.md)", edition.translate_page(page.read_text(encoding="utf-8")))
        page.write_text(REFERENCE.sub(_link_english, text), encoding="utf-8")
    shutil.rmtree(source / "api")
    (source / "api").mkdir()
    for name, title in ENGLISH_ONLY.items():
        leads = translated("This page is in English:", language)
        address = "../" * (1 + name.count("/")) + name
        heading = translated(title, language)
        text = f'---\norphan: true\n---\n\n# {heading}\n\n{leads} <a href="{address}.html">{title}</a>\n'
        (source / f"{name}.md").write_text(text, encoding="utf-8")


def _link_english(link: re.Match[str]) -> str:
    text = re.sub("`([^`]*)`", r"<code>\1</code>", link["text"])
    return f'<a href="../{link["page"]}.html">{text}</a>'


def link_lessons(text: str, names: Mapping[str, str]) -> str:
    """Link each mention of a lesson in a page, if that lesson exists."""
    return re.sub(
        r"(?m)(?<!# )(?:\blesson (?=\d\d\b)|第 (?=\d\d 课))(\d\d)(?: 课)?",
        lambda mention: f"[{mention[0]}](notebooks/{names[mention[1]]})" if mention[1] in names else mention[0],
        text,
    )


def write_overview(ran: Mapping[Path, Any], language: str = "en") -> str:
    """Write the cards of the lessons."""
    lessons = {path.stem: read_facts(notebook) for path, notebook in ran.items() if is_lesson(path)}
    facts = translated("{minutes} minutes. You need {needs}.", language)
    cards = [
        CARD.format(name=name, facts=facts.format(**vars(lesson)), **vars(lesson)) for name, lesson in lessons.items()
    ]
    return "\n".join([":::::{container} lessons", *cards, ":::::", ""])


def write_commands() -> str:
    """Write the page of the command line: the help of each command."""
    [commands] = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    parts = [f"## {name}\n\n```text\n{command.format_help()}```\n" for name, command in commands.choices.items()]
    return "\n".join([COMMANDS, *parts])


def write_launch_links() -> str:
    """Write the links that open lesson 01 elsewhere; empty if the project has no address."""
    addresses = launch_addresses(read_repository(), "notebooks/01_the_graph.ipynb")
    links = [f"[{place}]({address})" for place, address in addresses.items()]
    return f"Nothing to install: open lesson 01 on {' or on '.join(links)}.\n" if links else ""


def is_lesson(path: Path) -> bool:
    """Whether a notebook is a numbered lesson, not another page of the course."""
    return path.name[:2].isdigit()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
