"""The handouts: the map of the four hooks says what torch does, and each page prints on one sheet."""

import re
from pathlib import Path

import nbformat
import pytest
import torch
from nbconvert.filters import markdown2html
from torch import nn

from tests.requirements import skip_or_fail
from tools import handouts
from tools.notebook_runs import run_all
from tools.slide_cells import make_slides
from tools.translation.message_sources import NOTEBOOKS

LESSONS = sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))
FACTS = "You need nothing. It takes about 5 minutes."
FIRST = f"# Lesson 09 · End & more\n\n**The question: what is left of `loss`?**\n\n{FACTS}"


def test_the_map_names_each_hook_with_its_arguments_and_says_in_which_order_they_fire() -> None:
    page = (handouts.SOURCE / "four_hooks.html").read_text(encoding="utf-8")
    fired: list[tuple[str, int]] = []
    module = nn.Linear(1, 1)
    places = re.findall(r"<h2>([A-D]) · .*?</h2>\s*<p><code>hook\((.+?)\)", page)
    registers = re.findall(r"<td>([A-D])</td><td><code>module\.(\w+)\(hook\)", page)
    for letter, name in registers:
        getattr(module, name)(lambda *given, letter=letter: fired.append((letter, len(given))))
    module(torch.ones(1, requires_grad=True)).backward()
    assert sorted(fired) == [(letter, arguments.count(",") + 1) for letter, arguments in sorted(places)]
    assert f"They run in the order {', '.join(letter for letter, _ in fired)}." in page


def test_a_worksheet_has_the_predictions_of_its_slides_and_the_code_of_the_hooks_that_they_name() -> None:
    texts = ["What is `a.grad`, if a < b? Run the cell.", "And with `double`?\n\nMore.", "Why `double`?"]
    hook, other = "def double(grad):\n    return grad * 2", "def other(grad):\n    pass"
    tags = {"tags": ["slide"]}
    cells = [
        nbformat.v4.new_markdown_cell(FIRST),
        nbformat.v4.new_code_cell(f"{hook}\n\n\n{other}"),
        *(nbformat.v4.new_markdown_cell(f"**Predict.** {text}", metadata=tags) for text in texts),
        nbformat.v4.new_markdown_cell("**Predict.** Not on a slide?"),
    ]
    page = handouts.make_worksheet(nbformat.v4.new_notebook(cells=cells))
    assert "<h1>09 End &amp; more</h1>" in page and "<code>a.grad</code>, if a &lt; b?" in page and "More." not in page
    assert "<code>loss</code>" in page and "`" not in page and "Run the cell" not in page
    assert page.count("I expect") == len(texts) and "Not on a slide" not in page
    assert re.findall("<pre>(.*?)</pre>", page, re.DOTALL) == [hook]


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.name[:2])
def test_a_worksheet_asks_what_the_slides_ask(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    slides = [cell.source for cell in make_slides(notebook).cells if "asks" in cell.metadata.get("tags", [])]
    title = "### Predict\n\n"
    asked = [markdown2html(text.removeprefix(title)) for text in slides if text.startswith(title)]
    assert asked and [parts["text"] for parts in handouts.list_questions(notebook.cells)] == asked


def test_the_page_for_lecturers_links_to_every_handout_and_the_longest_print_on_one_sheet(tmp_path: Path) -> None:
    """The lesson with the most predictions runs: graphs make its worksheet the longest."""
    notebooks = {path: nbformat.read(path, as_version=4) for path in LESSONS}
    ran = run_all([max(LESSONS, key=lambda path: str(notebooks[path]).count("**Predict.**"))])
    pages = handouts.make_pages(tmp_path, notebooks | ran)
    text = (handouts.SOURCE.parent / "teaching.md").read_text(encoding="utf-8")
    assert re.findall(r'href="handouts/(\w+\.html)"', text) == [page.name for page in pages]
    browser = handouts.find_browser()
    if browser is None:
        skip_or_fail("browser", "Chromium is not installed")
    longest = max(pages[1:], key=lambda page: page.stat().st_size)
    printed = handouts.print_pages([pages[0], longest], browser)
    sides = [len(re.findall(rb"/Type\s*/Page\b", path.read_bytes())) for path in printed]
    assert sides[0] == 1 and sides[1] <= 2
