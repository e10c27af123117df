"""What recording a part costs is measured on what the page says."""

from pathlib import Path
from typing import Any

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


def test_a_pass_that_is_left_out_is_measured_over_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "CALLS", 10)
    case = Case("small", torch.nn.Linear(3, 3), torch.ones(2, 3), 5)
    times = iter([2.0, 3.0, 4.0, 8.0])
    watched: list[Any] = []
    monkeypatch.setattr(bench, "seconds", lambda case, watch: watched.append(watch) or next(times))
    assert bench.skipped(case) == [1.5, 2.0]
    assert watched == [bench.plain] * 4
    called = iter([1.0, 3.0, 1.0, 2.0])
    monkeypatch.setattr(bench, "_called", lambda model, x: next(called))
    assert bench.calls() == [2.0 / 10 * 1e6, 1.0 / 10 * 1e6]
    assert bench.spread([1.0, 2.0, 4.0]) == "**2.00** (1.00 to 4.00)"
