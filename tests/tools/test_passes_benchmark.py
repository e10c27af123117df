"""What many passes in one recording cost is measured for every count and action that the page shows."""

import mmap
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import passes as bench
from benchmarks.tables import read_section

TABLE = read_section(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
TIMES, PEAKS, PLAYED = (
    [line.strip("| ").split(" | ") for line in table.splitlines() if "**" in line] for table in TABLE.split("\n\n")[:3]
)


def test_all_counts_and_actions_are_in_the_tables() -> None:
    for rows in (TIMES, PEAKS, PLAYED):
        assert [row[0] for row in rows] == [f"{count:,}" for count in bench.COUNTS]
    assert all(more == 4 * less for less, more in pairwise(bench.COUNTS))
    assert f"| {' | '.join(bench.HEAD)} |" in TABLE


def test_an_action_is_measured_in_a_copy_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "ROUNDS", 1)
    made: list[int] = []

    def hold() -> mmap.mmap:
        made.append(1)
        size = 64 * 1024 * 1024
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # malloc might take what was freed
        for place in range(0, size, mmap.PAGESIZE):
            memory[place] = 1
        return memory

    ((spent, held),) = bench.measure_rounds(hold)
    assert not made and 0 <= spent < 10 and held >= 62 * 1024
