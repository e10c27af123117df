"""Corrected errors of lessons, screens and the look-up page do not return; PyTorch itself confirms the corrections."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from hookviz.course.other_frameworks import read_printed
from hookviz.support.messages import say
from tests.course.reading import FOLDER, PAGE, code_with_checks, has_assertion, links_to_cells, read_notebook
from tests.course.test_sources import ROWS

ROOT = FOLDER.parent
LESSONS = sorted(FOLDER.glob("[01]*.ipynb"))
ITEMS = {key: (claim, links) for key, claim, links in ROWS}


def source(file: str, cell_id: str) -> str:
    """The source of one cell, on one line."""
    (matching,) = [cell.source for cell in read_notebook(file).cells if cell.id == cell_id]
    return " ".join(matching.split())


def prose(path: Path) -> str:
    return " ".join(
        "\n".join(cell.source for cell in read_notebook(path.name).cells if cell.cell_type == "markdown").split()
    )


def texts() -> dict[str, str]:
    """Every text for readers: lessons, look-up page, tables, the player's messages, and the comments of the package."""
    files = [*FOLDER.glob("*.md"), ROOT / "README.md", *(ROOT / "site").glob("*.md")]
    files += [path for kind in ("*.py", "*.js", "*.json") for path in (ROOT / "hookviz").rglob(kind)]
    plain = {path.name: " ".join(path.read_text(encoding="utf-8").split()) for path in files}
    return plain | {path.name: prose(path) for path in FOLDER.glob("*.ipynb")}


def grad_input_of_legacy(module: nn.Module, start: int) -> list[Any]:
    """The ``grad_input`` values that a legacy hook receives if backward starts at output ``start``."""
    received: list[Any] = []
    module.register_backward_hook(lambda module, grad_input, grad_output: received.append(grad_input))
    inputs = [torch.tensor(number, requires_grad=True) for number in (5.0, 7.0)]
    with pytest.warns(FutureWarning, match="non-full backward hook"):
        outputs = module(*inputs)
    outputs[start].backward()
    return received


class Pair(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        u = a * 2
        v = b * 3
        return u, v


def test_legacy_backward_hook_is_on_the_node_of_the_first_output_and_all_texts_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert grad_input_of_legacy(Pair(), 0) == [(torch.tensor(2.0), None)]
    assert grad_input_of_legacy(Pair(), 1) == []
    assert [name for name, text in texts().items() if re.search(r"\blast\*? node", text)] == []
    for key in ("sentence.backward_hook.kept", "sentence.backward_hook.edited", "sentence.backward_hook.replaced"):
        assert "the node of its first output" in say(key, hook="h", on="net", before="1", after="2")
    assert "the node of the first output tensor" in say("kept.backward_hook", dict="d", place=1, total=1)
    places = [("04_backward_hooks.ipynb", cell) for cell in ("c19", "r01")]
    places += [("10_under_the_hood.ipynb", cell) for cell in ("c37", "c47")]
    for file, cell in [*places, ("11_the_other_hooks.ipynb", "c58"), (PAGE, "legacy-text")]:
        assert re.search(r"first(?: output)? tensor|first output", source(file, cell)), (file, cell)


def test_lesson_shows_the_index_error_of_the_articles_code_in_a_full_backward_hook() -> None:
    layer = nn.Linear(3, 1, bias=False)
    layer.register_full_backward_hook(lambda module, gi, go: (gi[0] * 0, gi[1] * 0))
    with pytest.raises(IndexError, match="tuple index out of range"):
        layer(torch.ones(1, 3, requires_grad=True)).backward()
    for file, cell in (("04_backward_hooks.ipynb", "c48"), (PAGE, "zeros-3")):
        assert "tuple index out of range" in code_with_checks(file, cell)


def test_hook_cost_is_the_median_of_several_measurements_in_turns() -> None:
    cell = source("09_watching_training.ipynb", "c74")
    assert "for _ in range(7)" in cell and "for kind, taken in seconds.items()" in cell and "median(" in cell


def test_tensorflow_texts_name_the_session_run_hooks_of_version_1() -> None:
    for file, cell in (("12_coming_from_tensorflow_or_jax.ipynb", "c27"), (PAGE, "tensorflow-text")):
        text = source(file, cell)
        assert all(words in text for words in ("SessionRunHook", "LoggingTensorHook"))
        assert not re.search(r"denies|no such thing", text)
    assert "never met the word" in source(PAGE, "tensorflow-text")
    assert "article 4: no" not in prose(FOLDER / PAGE).partition("Has TensorFlow hooks?")[2][:80]


def test_nonlocal_texts_quote_the_articles_extracted_features() -> None:
    with pytest.raises(SyntaxError, match="no binding for nonlocal 'extracted_features' found"):
        compile("def hook(m, args, out):\n    nonlocal extracted_features", "script.py", "exec")
    for file, cell in (("05_handles_and_lifetimes.ipynb", "c39"), (PAGE, "nonlocal-text")):
        text = source(file, cell)
        assert "nonlocal extracted_features" in text and not re.search(r"nonlocal count|counts the calls", text)


def test_lesson_runs_a_late_hook_after_torch_compile_and_after_module_compile() -> None:
    cell = code_with_checks("11_the_other_hooks.ipynb", "c57g")
    assert "torch.compile(original" in cell and 'itself.compile(backend="eager")' in cell
    assert 'assert fired == ["added after module.compile"]' in cell
    assert "The one added after `module.compile()`" in source("11_the_other_hooks.ipynb", "c57i")


def test_leaf_is_defined_as_made_by_no_recorded_operation_in_all_texts() -> None:
    assert torch.ones(2).is_leaf and not torch.ones(2, requires_grad=True).double().is_leaf
    wrong_definition = re.compile(r"that you made with `requires_grad|made by you, with `requires_grad")
    assert [name for name, text in texts().items() if wrong_definition.search(text)] == []
    assert "no recorded operation made" in source("01_the_graph.ipynb", "c60")
    assert "- **leaf**: a tensor that no recorded operation made;" in (FOLDER / "glossary.md").read_text()
    assert "torch.ones(2).is_leaf" in source("01_the_graph.ipynb", "c08")


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_does_not_say_some_articles(path: Path) -> None:
    assert not re.search(r"[Ss]ome articles", prose(path))


def test_articles_guess_and_its_unexplained_none_are_quoted_correctly() -> None:
    for file, cell in (("10_under_the_hood.ipynb", "c36"), (PAGE, "accumulates-text")):
        assert "guess at the engine" in source(file, cell)
    assert "move the hook to `l1`, and it shows None" in source("04_backward_hooks.ipynb", "c21")
    assert "hooks the first layer, finds None" in source(PAGE, "first-layer-text")


def test_lesson_says_that_the_weights_of_its_network_are_random() -> None:
    text = source("06_getting_features_out.ipynb", "c41")
    assert "the weights are random" in text and "describe" not in text


REQUIRED_ASSERTIONS = {
    "0.1b": '[("look", "kept")]',
    "1.7b": "called == replicas and relu not in replicas",
    "2.7b": 'ran == ["Linear"]',
    "3.4b": "time.monotonic() - start >= 5 * 0.02",
}
"""Row of the source table → the assertion in its cell, for cells that once asserted something else."""


@pytest.mark.parametrize(("item", "assertion"), REQUIRED_ASSERTIONS.items())
def test_cell_linked_from_the_source_table_asserts_the_claim_of_its_row(item: str, assertion: str) -> None:
    (file, cell), *_ = re.findall(r"\(([\w.]+)#cell-id=([\w-]+)\)", ITEMS[item][1])
    checked = code_with_checks(file, cell)
    assert assertion in checked and has_assertion(checked)


@pytest.mark.parametrize("item", ["2.6a", "2.6b", "W23a", "K4a"])
def test_tensorflow_claim_is_run_with_tensorflow_and_shown_in_pytorch(item: str) -> None:
    claim, links = ITEMS[item]
    assert re.search(r"PyTorch|hooks act", claim)
    versions = {read_printed()[name]["versions"]["tensorflow"] for name in ("gradient_tape", "keras_callback")}
    assert {version.rpartition(".")[0] for version in versions} == set(
        re.findall(r"as TensorFlow ([\d.]+) printed", claim)
    )
    assert any("run_program(" in code_with_checks(link.file, link.cell) for link in links_to_cells(links))
