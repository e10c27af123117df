"""The commands, names, keys, numbers and versions in the README and on the pages of the site are correct."""

import argparse
import doctest
import re
import tomllib
from pathlib import Path

import nbformat
import pytest
import torch

import hookviz as hv
import hookviz.course
import hookviz.testing
from hookviz.analysis.findings import finding
from hookviz.analysis.formulas import derivatives
from hookviz.autograd import graph, tensor_statistics
from hookviz.autograd.torch_internals import TESTED
from hookviz.command_line.entry_point import build_parser
from hookviz.course import quiz
from hookviz.player import read_bundle
from hookviz.player.compression import pack
from hookviz.player.editions import make_editions
from hookviz.player.html_page import page, render_page
from hookviz.player.labels import screen_labels
from hookviz.player.trace_content import TraceContent
from hookviz.recorder.passes import pass_observer, saved_tensors
from hookviz.support.messages import languages
from tests.course.test_notebooks import LESSONS
from tests.unit.test_public_names import DESCRIBED
from tools.lesson_pages import read_facts

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "site").glob("*.md"))}
ON_ONE_LINE = {name: " ".join(page.split()) for name, page in PAGES.items()}
PYTHON: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]


def programs_per_run(file: str) -> int:
    [count] = re.findall(r'"HOOKVIZ_PROGRAMS", ([\d_]+)\)', (ROOT / "tests" / "proof" / file).read_text())
    return int(count)


def test_make_targets_and_variables_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"(?m)(?:^|`)make (\w+)", README))
    assert {"lab", "test", "site", "slides"} <= targets
    assert [target for target in targets if f"\n{target}: " not in makefile] == []
    variables = set(re.findall(r"\b([A-Z]+(?:_[A-Z]+)?)=", README)) - {languages.VARIABLE}
    assert [name for name in variables if f"\n{name} ?=" not in makefile] == []
    assert f"$({languages.VARIABLE})" in makefile


def test_names_of_the_api_on_the_pages_exist() -> None:
    for text in (README, *PAGES.values()):
        assert [name for name in re.findall(r"\bhv\.(\w+)", text) if not hasattr(hv, name)] == []
        assert [name for name in re.findall(r"`trace\.(\w+)", text) if not hasattr(hv.Trace, name)] == []


def test_all_names_stand_on_one_screen_of_the_readme_which_is_short() -> None:
    from hookviz.integrations import lightning, transformers

    screen = README.partition("## All names on one screen\n")[2].partition("\n## ")[0]
    named = {name for code in re.findall(r"`([^`]+)`", screen) for name in (code, *re.findall(r"\w+$", code))}
    [commands] = [action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)]
    modules = (hv, lightning, transformers, hookviz.course, hookviz.testing)
    public = {*DESCRIBED.split(), *commands.choices, *(name for module in modules for name in module.__all__)}
    assert public - named == set()
    assert 1_100 <= len(README.split()) <= 1_300


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if ">>> " in text])
def test_examples_on_a_page_are_right(page: str) -> None:
    """Those in the README run as doctests of pytest."""
    path, flags = ROOT / "site" / f"{page}.md", doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = doctest.testfile(str(path), module_relative=False, optionflags=flags, encoding="utf-8")
    assert found.attempted and not found.failed


def test_page_on_findings_explains_every_kind_and_has_the_words_that_are_printed_for_it() -> None:
    """The causes for which a hook did not fire have a table of their own: tests/proof/test_unfired.py."""
    table = PAGES["findings"].partition("\n## All kinds\n")[2].partition("\n## ")[0]
    rows = [line.split("|")[2:4] for line in table.splitlines() if line.startswith("|")][2:]
    words = [(re.findall(r"`([^`]+)`", kinds), printed.strip().split(", ")) for kinds, printed in rows]
    named = [pair for kinds, printed in words for pair in zip(kinds, printed, strict=True)]
    assert sorted(named) == sorted(pair for kinds in finding.KINDS.values() for pair in kinds.items())


def test_keys_in_the_manual_match_the_key_list_of_the_player() -> None:
    table = re.search(r"\| key \|.+?\n\n", PAGES["player"], re.DOTALL)
    assert table
    rows = re.findall(r"(?m)^\| (?!key |---)(.+?) \|", table[0])
    listed = [keys for name, keys in screen_labels().items() if name.startswith("keys_")]
    assert set(" ".join(rows).replace("·", " ").split()) == set(" ".join(listed).split())


def test_claims_about_the_first_example_are_true() -> None:
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    c.register_hook(lambda grad: grad + 2)
    e = c * d
    with hv.record() as trace:
        e.backward()
    formula = trace.why(7)[0].text
    why = f"`trace.why(7)` | why a gradient is what it is: PyTorch's formula with the saved values, `{formula}`"
    assert why in ON_ONE_LINE["guide"]
    assert quiz(trace).check(1, 6).right
    assert "smaller than 105 KB, and with both languages smaller than 120 KB" in ON_ONE_LINE["sharing"]
    both = make_editions(lambda: TraceContent.of(trace._data).full_content(), ["en", "zh"])
    assert len(page(trace._data).encode()) < 105_000 < len(render_page(both).encode()) < 120_000
    bytes_of_assets = sum(len(pack(read_bundle(name))) for name in ("page.js", "player.css"))
    assert "its script and style are about 75 KB of it" in ON_ONE_LINE["promises"]
    assert 70_000 < bytes_of_assets < 80_000


def test_numbers_on_the_pages_match_the_constants_of_the_code() -> None:
    total = programs_per_run("test_programs.py") + programs_per_run("test_nets.py")
    formulas = [row["entry"] for row in derivatives.load_formulas().values()]
    from_torch = len(formulas) - formulas.count(None)
    assert f"Python {PYTHON.removeprefix('>=')} and PyTorch {TESTED[0]}, or newer" in " ".join(README.split())
    assert f"over {total:,} generated programs" in README
    assert f"Python {PYTHON.removeprefix('>=')} or newer, make and 3 GB of disk" in ON_ONE_LINE["installing"]
    for sentence in (
        f"{total:,} generated programs, {programs_per_run('test_nets.py'):,} of them networks",
        f"formulas for {len(formulas)} kinds of node",
        f"{from_torch} of them are read from entries in PyTorch's",
        f"A graph of more than {graph.MAX_DEPTH:,} nodes in a row",
        f"if a tensor has more than {tensor_statistics.MAX_KEPT_NUMBERS} numbers",
        f"if the graph has more than {pass_observer.SMALL_GRAPH} nodes",
        f"would keep more than {saved_tensors.MAX_SAVED_NUMBERS:,} numbers for formulas",
    ):
        assert sentence in ON_ONE_LINE["promises"], sentence


def test_readme_links_to_each_lesson_and_the_page_of_lessons_says_what_it_shows() -> None:
    links = re.findall(r"\[(\d\d .+?)\]\(notebooks/(.+?)\)", README)
    rows = re.findall(r"(?m)^\| \[(\d\d .+?)\]\(notebooks/(.+?)\) \|", PAGES["lessons"])
    assert links == rows == [(read_facts(nbformat.read(path, as_version=4)).title, path.name) for path in LESSONS]
