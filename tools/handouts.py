"""Make the map of the four hooks, and worksheets of lessons, in build/handouts: ``python -m tools.handouts 01 02``.

Each is a page that prints on one sheet of A4, a worksheet on both sides, in the language that ``HOOKVIZ_LANGUAGE``
names. The lessons run for it, since a worksheet has the graphs that they ask about. Where Chromium is installed, there
are PDFs of them, too.
"""

import html
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nbconvert.filters import markdown2html

from hookviz.support.messages.languages import LANGUAGE_TAGS, current_language
from tools.lesson_pages import PREDICT, is_slide, read_facts
from tools.lessons import find_lessons, folder_of
from tools.notebook_runs import run_all
from tools.predictions import drop_instructions, find_code, find_graphs, parts_of
from tools.translation.catalogue import read_translations
from tools.translation.markdown_blocks import translate_html
from tools.translation.message_sources import ROOT
from tools.translation.translated import translated

SOURCE = ROOT / "site" / "handouts"
TARGET = Path("build") / "handouts"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PAGE = """\
<!DOCTYPE html>
<html lang="{tag}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{worksheet}</title>
<link rel="stylesheet" href="handout.css">
</head>
<body>
<main>
<h1>{title}</h1>
<div class="goal">{question}</div>
<p class="lines"><span>{name}</span><span>{date}</span></p>
{questions}
<section class="question">
<p>{surprise}</p>
<p class="answers"><span></span><span></span></p>
</section>
<p class="foot">{foot}</p>
</main>
</body>
</html>
"""
QUESTION = """\
<section class="question">
{graph}{text}{code}
<p class="answers"><span>{expect}</span><span>{was}</span><span>{because}</span></p>
</section>"""


def main(numbers: list[str]) -> None:
    """Make the map and the worksheets of the lessons with these numbers, and print what was made."""
    language = current_language()
    lessons = run_all(find_lessons(numbers, language))
    pages = make_pages(folder_of(language, TARGET), lessons, language)
    printed = print_pages(pages, find_browser())
    for path in printed or pages:
        print(path)
    if not printed:
        print("Chromium is not installed here. Open a page in any browser and print it to a PDF.")


def make_pages(target: Path, lessons: Mapping[Path, Any], language: str = "en") -> list[Path]:
    """Write the pages in a language into ``target``, with a worksheet for each of these lessons that ran.

    Returns:
        their paths.
    """
    target.mkdir(parents=True, exist_ok=True)
    for file in SOURCE.iterdir():
        shutil.copy(file, target)
    pages = [target / "four_hooks.html"]
    if language != "en":
        text = translate_html(pages[0].read_text(encoding="utf-8"), read_translations(language).translate)
        pages[0].write_text(text.replace('lang="en"', f'lang="{LANGUAGE_TAGS[language]}"'), encoding="utf-8")
    for lesson, notebook in lessons.items():
        page = target / f"worksheet_{lesson.name[:2]}.html"
        page.write_text(make_worksheet(notebook, language), encoding="utf-8")
        pages.append(page)
    return pages


def make_worksheet(notebook: Any, language: str = "en") -> str:
    """Make the page on which a student writes down the predictions of a lesson that ran."""
    facts = read_facts(notebook)
    title, question = html.escape(facts.title), markdown2html(facts.question)
    words = {
        "expect": translated("I expect", language),
        "was": translated("It was", language),
        "because": translated("Because", language),
    }
    questions = [QUESTION.format(**parts, **words) for parts in list_questions(notebook.cells)]
    motto = translated("hookviz · hooks in PyTorch, step by step", language)
    before = translated("Write down what you expect before anybody runs the cell.", language)
    return PAGE.format(
        tag=LANGUAGE_TAGS[language],
        worksheet=translated("Worksheet {title}", language).format(title=title),
        title=title,
        question=question,
        name=translated("Name", language),
        date=translated("Date", language),
        questions="\n".join(questions),
        surprise=translated("What surprised me, and why it is so:", language),
        foot=f"{before} {motto}",
    )


def list_questions(cells: Sequence[Any]) -> list[dict[str, str]]:
    """Return the HTML of the predictions that the slides of a lesson ask: text, graph and code.

    The graph to draw on and the code of the hooks that a question names are there unless they were there before.
    """
    graphs, drawn = find_graphs(cells), ""
    questions, printed = [], set[str]()
    for index, cell in enumerate(cells):
        for match in PREDICT.finditer(cell.source if is_slide(cell) and cell.cell_type == "markdown" else ""):
            svg = graphs.get(cell.get("id", ""), "")
            is_new = bool(svg) and parts_of(svg) != parts_of(drawn)
            drawn = svg or drawn
            code = [source for source in find_code(match["text"], svg, cells[:index]) if source not in printed]
            printed.update(code)
            questions.append(
                {
                    "text": markdown2html(drop_instructions(match["text"])),
                    "graph": f'<div class="graph">{svg}</div>' if is_new else "",
                    "code": "".join(f"<pre>{html.escape(source)}</pre>" for source in code),
                }
            )
    return questions


def find_browser() -> str | None:
    """Find Chromium: the program that the variable HOOKVIZ_CHROMIUM names, or one on the path."""
    found = (shutil.which(name) for name in BROWSERS)
    return os.environ.get("HOOKVIZ_CHROMIUM") or next((path for path in found if path), None)


def print_pages(pages: Sequence[Path], browser: str | None) -> list[Path]:
    """Print pages to PDFs beside them, and return the paths of these; none without a browser."""
    printed = [page.with_suffix(".pdf") for page in pages] if browser else []
    for page, target in zip(pages, printed, strict=False):
        options = ["--headless", "--no-sandbox", "--no-pdf-header-footer", f"--print-to-pdf={target}"]
        subprocess.run([str(browser), *options, page.resolve().as_uri()], check=True, capture_output=True, timeout=120)
    return printed


if __name__ == "__main__":
    main(sys.argv[1:])
