"""What lessons, screens and the look-up page once said wrongly stays mended; PyTorch is asked who is right."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookviz.support.messages import say
from tests.course.reading import FOLDER, PAGE, asserts, read
from tests.course.test_sources import README, ROWS

ROOT = FOLDER.parent
LESSONS = sorted(FOLDER.glob("[01]*.ipynb"))
ITEMS = {key: (claim, shown) for key, claim, shown in ROWS}


def source(file: str, cell_id: str) -> str:
    """The source of one cell, on one line."""
    (found,) = [cell.source for cell in read(file).cells if cell.id == cell_id]
    return " ".join(found.split())


def prose(path: Path) -> str:
    return " ".join("\n".join(cell.source for cell in read(path.name).cells if cell.cell_type == "markdown").split())


def texts() -> dict[str, str]:
    """All that a person reads: lessons, page, tables, words on screen, and the comments of the package."""
    files = [*FOLDER.glob("*.md"), ROOT / "README.md", *(ROOT / "site").glob("*.md")]
    files += [path for kind in ("*.py", "*.js", "*.json") for path in (ROOT / "hookviz").rglob(kind)]
    plain = {path.name: " ".join(path.read_text(encoding="utf-8").split()) for path in files}
    return plain | {path.name: prose(path) for path in FOLDER.glob("*.ipynb")}


def grad_input_of_legacy(module: nn.Module, start: int) -> list[Any]:
    """What the legacy hook of a module with two outputs is given in a pass that begins at one of them."""
    given: list[Any] = []
    module.register_backward_hook(lambda module, grad_input, grad_output: given.append(grad_input))
    inputs = [torch.tensor(number, requires_grad=True) for number in (5.0, 7.0)]
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        outputs = module(*inputs)
    outputs[start].backward()
    return given


class Pair(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        u = a * 2
        v = b * 3
        return u, v


def test_a_legacy_hook_sits_on_the_node_of_the_first_output_and_no_text_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert grad_input_of_legacy(Pair(), 0) == [(torch.tensor(2.0), None)]
    assert grad_input_of_legacy(Pair(), 1) == []
    assert [name for name, text in texts().items() if re.search(r"\blast\*? node", text)] == []
    for key in ("sentence.backward_hook.kept", "sentence.backward_hook.edited", "sentence.backward_hook.replaced"):
        assert "the node of its first output" in say(key, hook="h", on="net", before="1", after="2")
    assert "the node of the first output tensor" in say("kept.backward_hook", dict="d", place=1, total=1)
    places = [("04_backward_hooks.ipynb", cell) for cell in ("c19", "c60")]
    places += [("10_under_the_hood.ipynb", cell) for cell in ("c37", "c47")]
    for file, cell in [*places, ("11_the_other_hooks.ipynb", "c58"), (PAGE, "legacy-text")]:
        assert re.search(r"first(?: output)? tensor|first output", source(file, cell)), (file, cell)


def test_the_articles_zeros_raise_an_error_in_a_full_hook_and_the_lesson_shows_it() -> None:
    layer = nn.Linear(3, 1, bias=False)
    layer.register_full_backward_hook(lambda module, gi, go: (gi[0] * 0, gi[1] * 0))
    with pytest.raises(IndexError, match="tuple index out of range"):
        layer(torch.ones(1, 3, requires_grad=True)).backward()
    for file, cell in (("04_backward_hooks.ipynb", "c48"), (PAGE, "zeros-3")):
        assert "tuple index out of range" in source(file, cell)
    assert "the same code" not in source("04_backward_hooks.ipynb", "c46")


def test_what_hooks_cost_is_measured_more_than_once_and_asserted() -> None:
    cell = source("09_watching_training.ipynb", "c44")
    assert "for _ in range(9)" in cell and "median(" in cell and 'assert ratios["singular_values"] > 2' in cell
    assert "timeit.timeit(epoch" not in "".join(one.source for one in read("09_watching_training.ipynb").cells)


def test_of_tensorflow_is_said_what_the_article_says_and_what_version_1_had() -> None:
    for file, cell in (("12_coming_from_tensorflow_or_jax.ipynb", "c41"), (PAGE, "tensorflow-text")):
        text = source(file, cell)
        assert all(words in text for words in ("SessionRunHook", "LoggingTensorHook", "never met the word"))
        assert not re.search(r"denies|no such thing", text)
    assert "article 4: no" not in prose(FOLDER / PAGE).partition("Has TensorFlow hooks?")[2][:80]


def test_the_article_keeps_features_by_nonlocal_and_does_not_count() -> None:
    with pytest.raises(SyntaxError, match="no binding for nonlocal 'extracted_features' found"):
        compile("def hook(m, args, out):\n    nonlocal extracted_features", "script.py", "exec")
    for file, cell in (("05_handles_and_lifetimes.ipynb", "c39"), (PAGE, "nonlocal-text")):
        text = source(file, cell)
        assert "nonlocal extracted_features" in text and not re.search(r"nonlocal count|counts the calls", text)


def test_after_compiling_in_place_a_late_hook_runs_and_the_lesson_runs_both() -> None:
    cell = source("11_the_other_hooks.ipynb", "c49")
    assert "torch.compile(plain" in cell and 'assert "late" not in fired' in cell
    assert 'itself.compile(backend="eager")' in cell and 'assert "later" in fired' in cell
    assert "`module.compile()` compiles the module itself, and then a later hook does run" in source(
        "11_the_other_hooks.ipynb", "c48"
    )


def test_a_leaf_is_what_no_recorded_operation_made_and_no_text_says_otherwise() -> None:
    assert torch.ones(2).is_leaf and not torch.ones(2, requires_grad=True).double().is_leaf
    wrong = re.compile(r"that you made with `requires_grad|made by you, with `requires_grad")
    assert [name for name, text in texts().items() if wrong.search(text)] == []
    assert "no recorded operation made" in source("01_the_graph.ipynb", "c60")
    assert "- **leaf**: a tensor that no recorded operation made;" in (FOLDER / "glossary.md").read_text()
    assert "torch.ones(2).is_leaf" in source("01_the_graph.ipynb", "c08")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_one_article_is_not_called_some(path: Path) -> None:
    assert not re.search(r"[Ss]ome articles", prose(path))


def test_a_guess_is_called_a_guess_and_a_puzzle_is_told_as_it_stands() -> None:
    for file, cell in (("01_the_graph.ipynb", "c53"), ("10_under_the_hood.ipynb", "c36"), (PAGE, "accumulates-text")):
        assert "guess at the engine" in source(file, cell)
    assert "moves the hook to `l1`, it shows None" in source("04_backward_hooks.ipynb", "c21")
    assert "hooks the first layer, finds None" in source(PAGE, "first-layer-text")


def test_numbers_of_an_untrained_network_are_no_description() -> None:
    text = source("06_getting_features_out.ipynb", "c41")
    assert "the weights are random" in text and "numbers that describe it" not in text


PROVEN = {
    "0.1b": '[("look", "kept")]',
    "1.7b": "called == replicas and relu not in replicas",
    "2.7b": 'ran == ["registered again"]',
    "3.4b": 'ratios["singular_values"] > 2',
}
"""What the cell of an item asserts, where it once asserted something else."""


@pytest.mark.parametrize(("item", "asserted"), PROVEN.items())
def test_a_cell_of_the_source_map_asserts_what_its_item_says(item: str, asserted: str) -> None:
    (file, cell), *_ = re.findall(r"\(([\w.]+)#cell-id=([\w-]+)\)", ITEMS[item][1])
    (found,) = [one.source for one in read(file).cells if one.id == cell]
    assert asserted in found and asserts(found)


@pytest.mark.parametrize("item", ["2.6a", "2.6b", "W23a", "K4a"])
def test_what_is_said_of_tensorflow_follows_its_documentation_and_the_cell_shows_pytorch(item: str) -> None:
    claim, _ = ITEMS[item]
    assert "by its documentation" in claim and re.search(r"PyTorch|hooks act", claim)
    assert "TensorFlow is not installed" in " ".join(README.split())
