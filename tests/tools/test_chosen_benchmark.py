"""The benchmark of partial recording measures the modules that its page names."""

from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from benchmarks import partial_recording as bench
from benchmarks.cases import CASES, Case

PAGE = Path(bench.__file__).with_name("README.md")


@pytest.mark.parametrize("name", bench.CHOSEN_MODULES)
def test_chosen_modules_exist_and_are_named_on_the_page(name: str) -> None:
    case = CASES[name]()
    assert isinstance(case.run, torch.nn.Module)
    with hv.record(case.run, only=bench.CHOSEN_MODULES[name]):
        pass
    assert f"| {case.name} | {', '.join(bench.CHOSEN_MODULES[name])} |" in PAGE.read_text(encoding="utf-8")


def test_record_part_records_the_chosen_module_only() -> None:
    case = Case("small", torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), torch.ones(2, 3))
    trace = bench.record_part("1")(case)
    assert [row.kind for row in trace.modules] == ["ReLU"]


def test_skipped_pass_is_measured_relative_to_a_plain_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 2)
    monkeypatch.setattr(bench, "MODULES", 10)
    case = Case("small", torch.nn.Linear(3, 3), torch.ones(2, 3), 5)
    times = iter([2.0, 3.0, 4.0, 8.0])
    observations: list[Any] = []
    monkeypatch.setattr(bench, "seconds_per_pass", lambda case, observe: observations.append(observe) or next(times))
    assert bench.skipped_pass_ratios(case) == [1.5, 2.0]
    assert observations == [bench.run_plain] * 4
    call_times = iter([1.0, 3.0, 1.0, 2.0])
    monkeypatch.setattr(bench, "_time_call", lambda model, x: next(call_times))
    assert bench.call_overheads() == [2.0 / 10 * 1e6, 1.0 / 10 * 1e6]
    assert bench.format_spread([1.0, 2.0, 4.0]) == "**2.00** (1.00 to 4.00)"
