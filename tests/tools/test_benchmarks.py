"""The benchmark measures what it says, and writes the table that its page shows."""

import statistics
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks import memory
from benchmarks.cases import CASES, Case
from benchmarks.observation import record_norms, record_pass, run_plain, run_with_empty_hooks
from benchmarks.resnet import ResNet18
from benchmarks.tables import read_section
from benchmarks.timing import ratios

PAGE = Path(bench.__file__).with_name("README.md")
SMALL = Case("small", torch.nn.Linear(3, 3), torch.ones(2, 3), 20)


def test_the_network_is_resnet_18() -> None:
    net = ResNet18()
    assert sum(parameter.numel() for parameter in net.parameters()) == 11_689_512  # as the paper's, with 1000 classes
    assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 1000)


@pytest.mark.parametrize("name", ["scalars", "mlp", "chain"])
def test_every_watch_leaves_the_gradient_of_a_plain_pass(name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    leaves = [case.input, *(case.run.parameters() if isinstance(case.run, torch.nn.Module) else ())]
    found = []
    for watch in (run_plain, run_with_empty_hooks, record_pass, record_norms):
        watch(case)
        found.append([leaf.grad for leaf in leaves if leaf.grad is not None])
    assert found[0]
    for other in found[1:]:
        assert all(torch.equal(*pair) for pair in zip(found[0], other, strict=True))


def test_the_recorded_case_is_recorded_forward_and_backward() -> None:
    kinds = {step.kind for step in record_pass(SMALL).steps}
    assert {"call", "forward", "seed", "compute", "accumulate"} <= kinds


def test_the_case_of_norms_is_recorded_with_norms_alone() -> None:
    assert record_norms(SMALL).statistics == "norm"
    assert [step.kind for step in record_norms(SMALL).steps] == [step.kind for step in record_pass(SMALL).steps]


def test_a_ratio_compares_a_pass_with_a_plain_one() -> None:
    calls: list[str] = []

    def slow(case: Case) -> None:
        calls.append("slow")
        for _ in range(30):
            run_plain(case)

    (found,) = ratios(SMALL, [slow], 3)
    assert len(found) == 3
    assert len(calls) == (3 + 1) * SMALL.times  # one round more, to warm up
    assert statistics.median(found) > 5


def test_memory_is_measured_in_a_process_of_its_own() -> None:
    """In KiB: the trace of 10,000 ops takes megabytes, beside which a pass over six scalars takes next to nothing."""
    large, small = (memory.measure_in_process(case, "recorded") for case in ("chain", "scalars"))
    assert large > 5_000 and large > 2 * small


def test_the_page_shows_every_case_and_every_column() -> None:
    table = read_section(PAGE.read_text(encoding="utf-8"), bench.START)
    head, _, *rows = [line for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in head.strip("|").split("|")] == list(bench.HEAD)
    assert [row.split("|")[1].strip() for row in rows] == [make().name for make in CASES.values()]
