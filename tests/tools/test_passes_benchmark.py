"""The benchmark of many passes measures every count and action that its page shows."""

import mmap
from pathlib import Path

import pytest

from benchmarks import passes as bench
from benchmarks.tables import read_section

TABLE = read_section(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
TIMES, PEAKS, PLAYBACK = (
    [line.strip("| ").split(" | ") for line in table.splitlines() if "**" in line] for table in TABLE.split("\n\n")[:3]
)


def test_tables_have_all_counts_and_actions() -> None:
    for rows in (TIMES, PEAKS, PLAYBACK):
        assert [row[0] for row in rows] == [f"{count:,}" for count in bench.COUNTS]
    assert bench.COUNTS == (50, 500, 2_000)
    assert f"| {' | '.join(bench.HEAD)} |" in TABLE


def test_action_is_measured_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 1)
    calls: list[int] = []

    def allocate() -> mmap.mmap:
        calls.append(1)
        size = 64 * 1024 * 1024
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # malloc might reuse freed memory
        for place in range(0, size, mmap.PAGESIZE):
            memory[place] = 1
        return memory

    ((spent, peak),) = bench.measure_rounds(allocate)
    assert not calls and 0 <= spent < 10 and peak >= 62 * 1024
