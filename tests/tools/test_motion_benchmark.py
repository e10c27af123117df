"""The benchmark of motion reads steps, frames, scripts and layouts from a performance trace."""

from pathlib import Path
from typing import Any

from benchmarks import motion as bench
from benchmarks.tables import read_section

TABLE = read_section(Path(bench.__file__).with_name("README.md").read_text(encoding="utf-8"), bench.START)
LIMITS = {"a step is painted after": 50, "the longest script": 8, "layouts": 0}


def event(name: str, at: float, milliseconds: float = 0) -> dict[str, Any]:
    return {"name": name, "ts": at * 1000, "dur": milliseconds * 1000}


EVENTS = [
    event("RunTask", 10, 6),
    event("FunctionCall", 10, 5),
    event("Layout", 11, 1),
    event("hookviz step", 12),
    event("hookviz motion", 14),
    event("RunTask", 18, 4),
    event("Layout", 18, 1),
    event("Commit", 20, 2),
    event("FunctionCall", 30, 2),
    event("FireAnimationFrame", 31, 3),
    event("Layout", 33, 1),
    event("Commit", 36, 1),
    event("FunctionCall", 50, 1),
    event("hookviz rest", 60),
    event("Layout", 61, 1),
    event("Commit", 70, 1),
]


def test_motion_counts_from_the_first_frame_of_a_step_to_its_end() -> None:
    motions = bench.read_events(EVENTS)
    assert (motions.steps, motions.moving, motions.paints, motions.layouts) == (1, 1, [12.0], 1)
    assert motions.scripts == [4.0, 1.0]


def test_step_whose_frame_is_missing_is_not_counted() -> None:
    assert bench.read_events([*EVENTS, event("RunTask", 80, 5), event("hookviz step", 82)]).steps == 1


def test_table_has_every_trace_and_keeps_within_the_limits() -> None:
    head, _, *rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines() if "|" in line]
    assert [row[0] for row in rows] == [*bench.TRACES]
    for row in rows:
        numbers = {name: float(cell.split()[0].strip("*")) for name, cell in zip(head[1:], row[1:], strict=True)}
        assert numbers["with motion"] > 0
        assert all(numbers[name] <= limit for name, limit in LIMITS.items())
