"""Recording does not change random autograd programs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import hookviz as hv
from hookviz.recorder.passes import pass_tracker

from .compare import Watch, same
from .machine import run_program
from .programs import ACTIONS, OPS, PLACES, Program, program_strategy
from .silent_hooks import SILENT
from .wrong import HARMLESS, WRONG, WRONG_ABOUT_SILENCE

PROGRAMS = int(os.environ.get("HOOKVIZ_PROGRAMS", 400))
"""The number of programs; set it higher for a longer search."""
EVERY_RUN = settings(
    max_examples=PROGRAMS, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)


@contextmanager
def large_graphs(are_large: bool) -> Iterator[None]:
    """Record every graph as if it were large: gradients are observed once unless the node has hooks."""
    small = pass_tracker.SMALL_GRAPH  # type: ignore[attr-defined]
    pass_tracker.SMALL_GRAPH = 0 if are_large else small  # type: ignore[attr-defined]
    try:
        yield
    finally:
        pass_tracker.SMALL_GRAPH = small  # type: ignore[attr-defined]


def check(program: Program, watch: Watch, whole: bool) -> dict[str, Any]:
    """Assert that a program has the same report with and without the watch."""
    once = run_program(program)
    recorded = run_program(program, watch, whole)
    same(once, recorded, program)
    return once


def test_recording_random_programs_changes_nothing_observable() -> None:
    ran: Counter[str] = Counter()

    @EVERY_RUN
    @given(program_strategy(), st.booleans(), st.booleans())
    def programs(program: Program, whole: bool, are_large: bool) -> None:
        with large_graphs(are_large):
            once = check(program, hv.record, whole)
        ran.update(once["counts"])
        ran["programs"] += 1

    programs()
    assert ran["programs"] >= PROGRAMS
    passes = ["pass backward", "pass inputs", "pass grad"]
    silent = [f"silent: {kind}" for kind in SILENT]
    assert not [name for name in (*OPS, *passes, *silent) if not ran[name]]
    missing = [pair for pair in product({*PLACES} - {"retain"}, ACTIONS) if not ran[": ".join(pair)]]
    assert len(missing) <= (0 if PROGRAMS >= 2_000 else 7)


@pytest.mark.parametrize("fault", WRONG)
def test_faulty_recorder_is_detected_by_random_programs(fault: str) -> None:
    """Each faulty recorder changes the report of one of the first few hundred programs."""
    if fault == "touches storages" and torch.__version__ < "2.10":
        pytest.skip("on torch 2.6 and 2.8 no program shows it: they add up gradients in the same way")

    @settings(EVERY_RUN, max_examples=500, phases=[Phase.generate])
    @given(program_strategy(), st.booleans())
    def programs(program: Program, whole: bool) -> None:
        check(program, WRONG[fault], whole)

    with pytest.raises(AssertionError, match="differs at"):
        programs()


@pytest.mark.parametrize("fault", WRONG_ABOUT_SILENCE)
def test_fault_about_silent_hooks_is_detected_by_random_programs(fault: str) -> None:
    """Each of these recorders changes nothing, and says something wrong about one of the first programs."""

    @settings(EVERY_RUN, max_examples=500, phases=[Phase.generate])
    @given(program_strategy())
    def programs(program: Program) -> None:
        check(program, WRONG_ABOUT_SILENCE[fault], whole=True)

    with pytest.raises(AssertionError, match=r"not listed|listed as silent|is not one of"):
        programs()


@settings(EVERY_RUN, max_examples=100)
@given(program_strategy(), st.booleans())
def test_an_observer_that_only_looks_passes(program: Program, whole: bool) -> None:
    check(program, HARMLESS, whole)
