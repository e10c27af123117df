"""Hooks that do not fire: the cause of each is the one that was built into its program."""

from collections.abc import Callable

import pytest

from hookviz import Trace
from tests.proof.unfired_programs import FIRING, PROGRAMS, Program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_cause_is_the_one_in_the_program(program: Program) -> None:
    rows = [row for row in program.run().unfired if row.name == "lost"]
    expected = (program.cause, program.on, program.is_proven)
    assert [(row.cause, row.on, row.is_proven) for row in rows] == [expected]


@pytest.mark.parametrize("run", FIRING, ids=lambda run: run.__name__)
def test_hook_that_fires_is_not_listed(run: Callable[[], Trace]) -> None:
    trace = run()
    assert list(trace.unfired) == []
    assert trace.unfired_rows == []
