"""The benchmark of opening traces uses fresh processes, and the initial widget state is small."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from scenes import recorded

from benchmarks import opening as bench
from benchmarks.tables import read_section

TABLE = read_section(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
MAX_KILOBYTES = {"scalars": 50, "resnet": 200}
"""Trace → the size limit of its initial widget state; tests/unit has those of slowly recorded traces."""


@pytest.mark.parametrize("name", MAX_KILOBYTES)
def test_initial_widget_state_keeps_within_its_size_limit(name: str) -> None:
    assert bench.widget_state_size(bench.record_case(bench.TRACES[name]())) <= MAX_KILOBYTES[name] * 1000


def test_benchmark_page_has_a_row_for_every_trace() -> None:
    rows = [line for line in TABLE.splitlines() if "**" in line]
    assert [row.split("|")[1].strip() for row in rows] == [case().name for case in bench.TRACES.values()]


def test_each_time_comes_from_a_fresh_process_after_a_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=f"{len(commands)}.5\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(bench, "ROUNDS", 2)
    assert bench.time_to_open("scalars", "player") == [2.5, 3.5]
    assert [command[-4:] for command in commands] == [["-m", "benchmarks.opening", "scalars", "player"]] * 3


def test_time_to_open_excludes_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    monkeypatch.setattr(bench, "record_case", lambda case: events.append("recorded"))
    monkeypatch.setattr(bench, "cpu_seconds", lambda: float(events.append("clock") or len(events)))
    monkeypatch.setitem(bench.DISPLAYS, "player", lambda trace: events.append("shown"))
    assert bench.time_first_opening("scalars", "player") == 2.0
    assert events == ["recorded", "clock", "shown", "clock"]


def test_widget_state_size_excludes_the_script() -> None:
    trace = recorded()
    state = trace.player().get_state()
    assert 0 < bench.widget_state_size(trace) < len(state["_esm"]) and state["content"]["runs"]
