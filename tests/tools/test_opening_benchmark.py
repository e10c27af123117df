"""Opening and playing large traces is measured as the page says."""

from pathlib import Path

import pytest
from scenes import recorded

from benchmarks import opening as bench
from benchmarks.writing import between

PAGE = Path(bench.__file__).with_name("README.md")


def test_the_page_has_a_row_for_every_trace_that_is_measured() -> None:
    rows = [line for line in between(PAGE.read_text(encoding="utf-8"), bench.START).splitlines() if "**" in line]
    assert [row.split("|")[1].strip() for row in rows] == [case().name for case in bench.OPENED.values()]


def test_each_time_is_that_of_a_process_that_has_shown_nothing_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 1)
    times = [bench.opened("scalars", what) for what in bench.SHOWN_AS]
    assert [len(found) for found in times] == [1, 1] and min(map(min, times)) > 0
    assert bench.first("scalars", "output") > 0


def test_what_is_sent_is_counted_without_the_script() -> None:
    trace = recorded()
    state = trace.player().get_state()
    assert 0 < bench.sent(trace) < len(state["_esm"]) and state["content"]["runs"]
