"""What many passes in one recording cost, as it was measured, grows with their number."""

import mmap
import re
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks import passes as bench
from benchmarks.writing import between

TABLE = between(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
TIMES, PEAKS, PLAYED = (
    [line.strip("| ").split(" | ") for line in table.splitlines() if "**" in line] for table in TABLE.split("\n\n")[:3]
)
FOUR_TIMES = 2.2**2
"""Twice the passes cost at most 2.2 times, four times the passes that twice over."""


def median(cell: str) -> float:
    return float(re.findall(r"\*\*([\d.]+) (?:s|MB|ms)\*\*", cell)[0])


def test_all_counts_and_actions_are_in_the_tables() -> None:
    for rows in (TIMES, PEAKS, PLAYED):
        assert [row[0] for row in rows] == [f"{count:,}" for count in bench.COUNTS]
    assert all(more == 4 * less for less, more in pairwise(bench.COUNTS))
    assert f"| {' | '.join(bench.HEAD)} |" in TABLE


@pytest.mark.parametrize("column", range(2, 2 + len(bench.ACTIONS)), ids=bench.ACTIONS)
@pytest.mark.parametrize("rows", [TIMES, PEAKS], ids=["time", "memory"])
def test_four_times_the_passes_cost_as_much_more(rows: list[list[str]], column: int) -> None:
    measured = [median(row[column]) for row in rows]
    assert all(more <= FOUR_TIMES * less for less, more in pairwise(measured)), measured


def test_a_page_of_many_passes_is_small_opens_and_steps_at_once() -> None:
    for row in PLAYED:
        size, step = float(row[1].removesuffix(" MB")), median(row[3])
        assert size <= 5 and step <= 50, row


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

    ((spent, held),) = bench.rounds(hold)
    assert not made and 0 <= spent < 10 and held >= 62 * 1024
