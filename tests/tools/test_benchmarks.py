"""The benchmark of recording measures what it claims, and its page shows the table that it writes."""

import statistics
from pathlib import Path

import pytest
import torch

from benchmarks import __main__ as bench
from benchmarks import memory, silent_hooks
from benchmarks.cases import CASES, Case
from benchmarks.observation import record_norms, record_pass, run_plain, run_with_empty_hooks
from benchmarks.tables import read_section
from benchmarks.timing import ratios
from hookviz.course.vision import resnet18

PAGE = Path(bench.__file__).with_name("README.md")
SMALL_CASE = Case("small", torch.nn.Linear(3, 3), torch.ones(2, 3), 20)


def test_the_network_is_resnet_18() -> None:
    net = resnet18()
    assert sum(parameter.numel() for parameter in net.parameters()) == 11_689_512  # as the paper's, with 1000 classes
    assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 1000)


@pytest.mark.parametrize("name", ["scalars", "mlp", "chain"])
def test_every_kind_of_observation_leaves_the_gradients_unchanged(name: str) -> None:
    torch.manual_seed(0)
    case = CASES[name]()
    leaves = [case.input, *(case.run.parameters() if isinstance(case.run, torch.nn.Module) else ())]
    gradients_of_runs = []
    for watch in (run_plain, run_with_empty_hooks, record_pass, record_norms):
        watch(case)
        gradients_of_runs.append([leaf.grad for leaf in leaves if leaf.grad is not None])
    assert gradients_of_runs[0]
    for other in gradients_of_runs[1:]:
        assert all(torch.equal(*pair) for pair in zip(gradients_of_runs[0], other, strict=True))


def test_record_pass_records_forward_and_backward() -> None:
    kinds = {step.kind for step in record_pass(SMALL_CASE).steps}
    assert {"call", "forward", "seed", "compute", "accumulate"} <= kinds


def test_record_norms_records_norms_only() -> None:
    assert record_norms(SMALL_CASE).statistics == "norm"
    assert [step.kind for step in record_norms(SMALL_CASE).steps] == [
        step.kind for step in record_pass(SMALL_CASE).steps
    ]


def test_ratio_compares_a_pass_with_a_plain_one() -> None:
    calls: list[str] = []

    def slow(case: Case) -> None:
        calls.append("slow")
        for _ in range(30):
            run_plain(case)

    (slow_ratios,) = ratios(SMALL_CASE, [slow], 3)
    assert len(slow_ratios) == 3
    assert len(calls) == (3 + 1) * SMALL_CASE.times  # plus one warm-up round
    assert statistics.median(slow_ratios) > 5


def test_memory_is_measured_in_a_separate_process() -> None:
    """In KiB: the trace of 10,000 ops takes megabytes, and a pass over six scalars very little."""
    large, small = (memory.measure_in_process(case, "recorded") for case in ("chain", "scalars"))
    assert large > 5_000 and large > 2 * small


def test_benchmark_page_has_every_case_and_every_column() -> None:
    table = read_section(PAGE.read_text(encoding="utf-8"), bench.START)
    head, _, *rows = [line for line in table.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in head.strip("|").split("|")] == list(bench.HEAD)
    assert [row.split("|")[1].strip() for row in rows] == [make().name for make in CASES.values()]


def test_without_notes_a_recording_lists_no_silent_hook() -> None:
    model = torch.nn.Linear(2, 2)
    model.weight.register_hook(print)
    model.weight.requires_grad_(False)
    case = Case("small", model, torch.ones(1, 2))
    with silent_hooks.without_notes():
        assert not silent_hooks.record(case).unfired
    assert [row.name for row in silent_hooks.record(case).unfired] == ["print"]
