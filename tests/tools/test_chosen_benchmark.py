"""What recording a part costs is measured on what the page says."""

from pathlib import Path

import pytest
import torch

import hookviz as hv
from benchmarks import chosen as bench
from benchmarks.cases import CASES, Case

PAGE = Path(bench.__file__).with_name("README.md")


@pytest.mark.parametrize("name", bench.PARTS)
def test_the_chosen_modules_are_there_and_named_on_the_page(name: str) -> None:
    case = CASES[name]()
    assert isinstance(case.run, torch.nn.Module)
    with hv.record(case.run, only=bench.PARTS[name]):
        pass
    assert f"| {case.name} | {', '.join(bench.PARTS[name])} |" in PAGE.read_text(encoding="utf-8")


def test_the_watch_records_a_part_only() -> None:
    case = Case("small", torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), torch.ones(2, 3))
    trace = bench.chosen("1")(case)
    assert [row.kind for row in trace.modules] == ["ReLU"]


def test_a_pass_that_is_left_out_is_measured_and_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "CALLS", 10)
    case = Case("small", torch.nn.Linear(3, 3), torch.ones(2, 3), 5)
    assert len(bench.skipped(case)) == 2 and all(ratio > 0 for ratio in bench.skipped(case))
    assert len(bench.calls()) == 2
