"""The table of the site on hooks in compiled code says what the programs show. All: ``compiled_hooks.py``."""

from pathlib import Path

import pytest
import torch

from tests.proof.compiled_hooks import HEADER, WAYS, Case, find_outcome

PAGE = Path(__file__).parents[2] / "site" / "recording.md"

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiler")]

SAMPLE = (
    Case("forward hook", "the compiled model", "torch.compile(net)", "later"),
    Case("forward pre-hook", "an `nn.Sequential` that is compiled", "torch.compile(net)", "later"),
    Case("full backward hook", "an `nn.Sequential` that is compiled", "net.compile()", "later"),
    Case("forward hook", "a module inside", "torch.compile(function)", "before"),
    Case("full backward pre-hook", "a module inside", "net.compile()", "later", "aot_eager"),
    Case("forward hook", "a module inside that breaks the graph", "torch.compile(net)", "later", "aot_eager"),
    Case("tensor hook registered in forward", "a module inside", "torch.compile(net)", "before"),
    Case("post-accumulate-grad hook", "a module inside", "torch.compile(function)", "later", "aot_eager"),
    Case("saved-tensors hooks", "the compiled model", "torch.compile(net)", "before"),
)


def read_table() -> dict[tuple[str, str], list[str]]:
    """Read kind and place of each hook → the other cells of its row."""
    _, _, table = PAGE.read_text("utf-8").partition(HEADER)
    lines = table.partition("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {(kind, row[1]): row[2:] for row in rows for kind in row[0].split(", ")}


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: "-".join(case))
def test_the_table_says_what_happens_to_a_hook(case: Case) -> None:
    early, *later, shown, shown_eagerly = read_table()[case.kind, case.place]
    called = later[list(WAYS).index(case.way)] if case.when == "later" else early
    outcome = find_outcome(case)
    assert (outcome.called, outcome.shown_eagerly) == (called, shown_eagerly)
    assert outcome.shown == shown or outcome.called == "no"


def test_what_is_exported_calls_no_hook_of_a_module() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Tanh())
    called: list[str] = []
    net[0].register_forward_hook(lambda *_: called.append("forward"))
    net[0].weight.register_hook(lambda _: called.append("weight"))
    exported = torch.export.export(net, (torch.ones(1, 1),)).module()
    called.clear()
    exported(torch.ones(1, 1)).sum().backward()
    assert called == ["weight"]
