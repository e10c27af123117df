"""Opening large traces is measured in fresh processes, and what a player is sent keeps to its bounds."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from scenes import recorded

from benchmarks import opening as bench
from benchmarks.tables import read_section

TABLE = read_section(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
MOST_KB = {"scalars": 50, "resnet": 200}
"""How much the player of a trace may be sent when it opens; those that take long to record have tests in unit."""


@pytest.mark.parametrize("name", MOST_KB)
def test_what_a_player_is_sent_keeps_to_its_bound(name: str) -> None:
    assert bench.widget_state_size(bench.record_case(bench.TRACES[name]())) <= MOST_KB[name] * 1000


def test_the_page_has_a_row_for_every_trace_that_is_measured() -> None:
    rows = [line for line in TABLE.splitlines() if "**" in line]
    assert [row.split("|")[1].strip() for row in rows] == [case().name for case in bench.TRACES.values()]


def test_each_time_is_that_of_a_fresh_process_and_the_first_warms_up(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        started.append(command)
        return subprocess.CompletedProcess(command, 0, stdout=f"{len(started)}.5\n")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(bench, "ROUNDS", 2)
    assert bench.time_to_open("scalars", "player") == [2.5, 3.5]
    assert [command[-4:] for command in started] == [["-m", "benchmarks.opening", "scalars", "player"]] * 3


def test_a_time_is_that_of_what_is_shown_and_not_of_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    monkeypatch.setattr(bench, "record_case", lambda case: happened.append("recorded"))
    monkeypatch.setattr(bench, "cpu_seconds", lambda: float(happened.append("clock") or len(happened)))
    monkeypatch.setitem(bench.DISPLAYS, "player", lambda trace: happened.append("shown"))
    assert bench.time_first_opening("scalars", "player") == 2.0
    assert happened == ["recorded", "clock", "shown", "clock"]


def test_what_is_sent_is_counted_without_the_script() -> None:
    trace = recorded()
    state = trace.player().get_state()
    assert 0 < bench.widget_state_size(trace) < len(state["_esm"]) and state["content"]["runs"]
