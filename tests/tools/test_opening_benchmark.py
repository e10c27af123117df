"""What is measured of opening and playing large traces is what the page says."""

import re
from pathlib import Path

import pytest
from scenes import recorded

from benchmarks import opening as bench
from benchmarks.cases import CASES
from benchmarks.writing import between

TABLE = between(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
BARS = {
    "scalars": (0.3, 50),
    "resnet": (0.3, 200),
    "encoder": (0.5, 400),
    "encoder48": (1, None),
    "chain": (1, 1500),
    "fan": (1, 1500),
}
"""Seconds for the first picture, KB for the player's state."""


def test_the_table_has_each_trace_within_its_bars() -> None:
    rows = [line.split(" | ") for line in TABLE.splitlines() if "**" in line]
    for (seconds, size), cells in zip(BARS.values(), rows, strict=True):
        first, output, shown, step, scrub = (
            float(re.findall(r"\*\*([\d.]+) (?:s|ms)\*\*", cells[at])[0]) for at in (2, 3, 5, 6, 7)
        )
        assert max(first, output) <= seconds and shown <= 1000 and step <= 50 and scrub <= 100, cells
        assert size is None or int(cells[4].removesuffix(" KB")) <= size


def test_it_names_every_trace_that_is_measured() -> None:
    assert list(bench.OPENED) == list(BARS)
    for name in ("resnet", "encoder"):
        assert f"| {CASES[name]().name} |" in TABLE
    assert "| chain of 10,000 ops | 20,004 |" in TABLE and "| fan of 10,000 inputs | 20,0" in TABLE


def test_each_time_is_that_of_a_process_that_has_shown_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 1)
    times = [bench.opened("scalars", what) for what in bench.SHOWN_AS]
    assert [len(found) for found in times] == [1, 1] and min(map(min, times)) > 0
    assert bench.first("scalars", "output") > 0


def test_what_is_sent_is_counted_without_the_script() -> None:
    trace = recorded()
    state = trace.player().get_state()
    assert 0 < bench.sent(trace) < len(state["_esm"]) and state["content"]["runs"]
