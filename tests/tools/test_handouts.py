"""The handouts: the map of the four hooks says what torch does, and each page prints on one sheet."""

import re
from pathlib import Path
from typing import Any

import nbformat
import torch
from torch import nn

from tests.requirements import skip_or_fail
from tools import handouts
from tools.notebook_runs import run_all
from tools.translation.message_sources import NOTEBOOKS


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


def run_longest() -> dict[Path, Any]:
    """Read the lessons, and run the one with the most predictions: graphs make its worksheet the longest."""
    paths = sorted(NOTEBOOKS.glob("[0-9]*_*.ipynb"))
    notebooks = {path: nbformat.read(path, as_version=4) for path in paths}
    return notebooks | run_all([max(paths, key=lambda path: str(notebooks[path]).count("**Predict.**"))])


def test_the_page_for_lecturers_links_to_every_handout_and_the_longest_print_on_one_sheet(
    tmp_path: Path,
) -> None:
    pages = handouts.make_pages(tmp_path, run_longest())
    text = (handouts.SOURCE.parent / "teaching.md").read_text(encoding="utf-8")
    assert re.findall(r'href="handouts/(\w+\.html)"', text) == [page.name for page in pages]
    browser = handouts.find_browser()
    if browser is None:
        skip_or_fail("browser", "Chromium is not installed")
    longest = max(pages[1:], key=lambda page: page.stat().st_size)
    for printed in handouts.print_pages([pages[0], longest], browser):
        assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) == 1, printed.name
