"""A fixed sample of the programs of ``benchmarks/detection``: each fault is named, and no healthy twin has an alarm."""

from itertools import islice
from pathlib import Path

import pytest

from benchmarks.detection.__main__ import list_programs
from benchmarks.detection.faults import FAULTS
from benchmarks.detection.judge import judge, list_alarms, record_program
from benchmarks.detection.nets import NETS
from benchmarks.detection.programs import STYLES, Placed, write_program

pytestmark = pytest.mark.slow

STEP = 53
"""Of so many programs one is run; it shares no factor with the numbers of nets and styles: all of them occur."""


def test_faults_of_generated_programs_are_named_with_their_lines(tmp_path: Path) -> None:
    verdicts = []
    for number, (text, faults) in enumerate(islice(list_programs(), 0, None, STEP)):
        path = tmp_path / f"program_{number}.py"
        path.write_text(text)
        verdicts += [verdict for _name, verdict in judge(path, faults)]
    assert {"false", "silent"}.isdisjoint(verdicts)
    assert verdicts.count("right") >= 0.9 * len(verdicts)


def test_healthy_twins_have_no_alarm(tmp_path: Path) -> None:
    path = tmp_path / "twin.py"
    for number, fault in enumerate(FAULTS):
        placed = Placed(fault, fault.layers[0], is_healthy=True)
        path.write_text(write_program(NETS[number % len(NETS)], [placed], STYLES[number % len(STYLES)], number))
        assert list_alarms(record_program(path)) == [], fault.name
