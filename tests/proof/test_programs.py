"""Programs that nobody thought of give the same in every detail when they are recorded."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import hookviz as hv
from hookviz.recorder import pass_tracker

from .compare import Watch, same
from .machine import run_program
from .programs import ACTIONS, OPS, PLACES, Program, program_strategy
from .wrong import HARMLESS, WRONG

PROGRAMS = int(os.environ.get("HOOKVIZ_PROGRAMS", 2_000))
"""Set it to a larger number for a longer search."""
EVERY_RUN = settings(
    max_examples=PROGRAMS,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def as_large() -> Iterator[hv.Trace]:
    """A recording that looks at each graph as it does at large ones: at no gradient twice unless there is a hook."""
    small, pass_tracker.SMALL_GRAPH = pass_tracker.SMALL_GRAPH, 0  # type: ignore[attr-defined]
    try:
        with hv.record() as trace:
            yield trace
    finally:
        pass_tracker.SMALL_GRAPH = small  # type: ignore[attr-defined]


def check(program: Program, watch: Watch, whole: bool) -> dict[str, Any]:
    """Assert that a program shows the same whether it is watched or not."""
    once = run_program(program)
    recorded = run_program(program, watch, whole)
    same(once, recorded, program)
    return once


def test_recorded_programs_with_every_operation_and_every_kind_of_hook_show_the_same_in_every_detail() -> None:
    ran: Counter[str] = Counter()

    @EVERY_RUN
    @given(program_strategy(), st.booleans(), st.sampled_from([hv.record, as_large]))
    def programs(program: Program, whole: bool, watch: Watch) -> None:
        once = check(program, watch, whole)
        ran.update(once["counts"])
        ran["programs"] += 1

    programs()
    assert ran["programs"] >= PROGRAMS
    hooks = [f"{place}: {action}" for place in PLACES if place != "retain" for action in ACTIONS]
    passes = ["pass backward", "pass inputs", "pass grad"]
    assert not [name for name in (*OPS, *hooks, *passes) if not ran[name]]


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_recorder_is_found_out(fault: str) -> None:
    """Each recorder that is wrong on purpose shows in one of the first few hundred programs."""

    @settings(EVERY_RUN, max_examples=500, phases=[Phase.generate])
    @given(program_strategy(), st.booleans())
    def programs(program: Program, whole: bool) -> None:
        check(program, WRONG[fault], whole)

    with pytest.raises(AssertionError, match="differs at"):
        programs()


@settings(EVERY_RUN, max_examples=300)
@given(program_strategy(), st.booleans())
def test_an_observer_that_only_looks_passes(program: Program, whole: bool) -> None:
    check(program, HARMLESS, whole)
