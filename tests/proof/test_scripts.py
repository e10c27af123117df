"""Every script gives the same in every detail when it is recorded, and nothing of the recorder is left behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import hookviz as hv
from tests.waiting import PATIENCE

from .compare import PACKAGE, Watch, package_frames, plain, same, uncollected
from .scripts import SCRIPTS
from .show import Show, perform, surroundings
from .wrong import HARMLESS, WRONG, kept, patched_for_good

everywhere = pytest.mark.parametrize("whole", [False, True], ids=["around the pass", "around everything"])


def check(name: str, watch: Watch, whole: bool) -> dict[str, Any]:
    """Assert that a script shows the same when it is watched, and return what it shows then."""
    warm_up(name)
    # One line runs them all: some of torch's warnings show the stack.
    once, again, recorded = (perform_tidily(name, how, whole) for how in (plain, plain, watch))
    same(once, again, f"{name} is not the same in two plain runs")
    same(once, recorded, name)
    return recorded


@cache
def warm_up(name: str) -> None:
    """Run a script once, so that what torch does only the first time is done."""
    perform(SCRIPTS[name], plain, whole=False)


def perform_tidily(name: str, watch: Watch, whole: bool) -> dict[str, Any]:
    """Run a script, and assert that it leaves the process as it was."""
    before = surroundings()
    report = perform(SCRIPTS[name], watch, whole)
    same(before, surroundings(), f"what {name} left behind")
    return report


@everywhere
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_recorded_script_shows_the_same_in_every_detail(name: str, whole: bool) -> None:
    recorded = check(name, hv.record, whole)
    assert not package_frames(recorded["failure"])


def test_the_recorder_is_there_at_all() -> None:
    """What is proved here holds of a recorder that does nothing, too; this one sees both hooks."""
    a = torch.tensor(2.0, requires_grad=True)
    c = a * 3
    c.register_hook(lambda grad: grad + 2)
    a.register_hook(lambda grad: None)
    with hv.record() as trace:
        c.backward()
    assert len(trace.firings) == 2


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_recorder_is_found_out(fault: str) -> None:
    with pytest.raises(AssertionError, match="differs at"):
        check_all(WRONG[fault])
    kept.clear()


def check_all(watch: Watch) -> None:
    """Check one script after the other."""
    for name in SCRIPTS:
        check(name, watch, whole=False)


def test_a_patch_that_stays_is_found_out() -> None:
    engine = torch.autograd.graph._engine_run_backward
    try:
        with pytest.raises(AssertionError, match="left behind"):
            check("a_diamond", patched_for_good, whole=False)
    finally:
        torch.autograd.graph._engine_run_backward = engine


COUNTED = "a_full_backward_hook_without_an_input_that_needs_grad"
"""In it torch warns, and counts frames to find the line: around these observers, which are put over it, is one more."""


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != COUNTED])
def test_an_observer_that_only_looks_passes(name: str) -> None:
    check(name, HARMLESS, whole=False)


def instances() -> Counter[str]:
    """Count the objects of hookviz that are alive, but for the few sources of functions that it keeps in a cache."""
    gc.collect()
    kinds = Counter(map(str, map(type, gc.get_objects())))
    return Counter({kind: count for kind, count in kinds.items() if "'hookviz." in kind and "Source" not in kind})


def test_nothing_of_a_recording_lives_on_when_its_trace_is_gone() -> None:
    check("a_diamond", hv.record, whole=True)
    before = instances()
    for name in ("the_picture_with_hooks", "double_backward", "a_tensor_hook_raises", "a_module_with_hooks"):
        perform(SCRIPTS[name], hv.record, whole=True)
    assert instances() == before


def build(hook: Callable[[torch.Tensor], Any]) -> tuple[torch.Tensor, list[weakref.ref[torch.Tensor]]]:
    """Return a root with hooks behind it, and weak references to all that must go when the root goes."""
    a = torch.randn(3, requires_grad=True)
    b = a.exp() * a
    c = b.sin()
    for tensor in (a, b, c):
        tensor.register_hook(hook)
    b.retain_grad()
    root = c.sum()
    return root, [weakref.ref(tensor) for tensor in (a, b, c, root)]


@pytest.mark.parametrize("keep_trace", [False, True], ids=["without the trace", "while the trace lives"])
def test_a_graph_is_freed_at_once_after_its_recording(keep_trace: bool) -> None:
    traces = []
    with uncollected():
        with hv.record() as trace:
            root, references = build(lambda grad: grad * 2)
            root.backward()
        traces.append(trace)
        if not keep_trace:
            traces.clear()
            del trace
        del root
        assert [reference() for reference in references] == [None] * 4


def test_a_gradient_is_freed_while_the_pass_goes_on() -> None:
    """The recorder holds no gradient: what the first hook saw is gone when the last hook runs."""
    seen: list[weakref.ref[torch.Tensor]] = []
    dead: list[bool] = []
    a = torch.randn(100, requires_grad=True)
    b = a.exp()
    c = b.sin()
    c.register_hook(lambda grad: seen.append(weakref.ref(grad)))
    a.register_hook(lambda grad: dead.append(seen[0]() is None))
    with uncollected(), hv.record():
        c.sum().backward()
    assert dead == [True]


@pytest.mark.parametrize("name", ["a_diamond", "a_tensor_hook_raises", "a_pass_inside_a_hook"])
def test_the_collector_stays_switched_on(name: str) -> None:
    show = Show(hv.record)
    try:
        SCRIPTS[name](show)
    except ValueError as error:
        show.log.append(str(error))
    assert gc.isenabled()


def record_once() -> None:
    """Record a small pass."""
    with hv.record():
        root, _ = build(lambda grad: grad * 2)
        root.backward()


def resident() -> int:
    """Return how many bytes of memory this process has."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def test_three_thousand_recordings_leave_memory_where_it_was() -> None:
    for _ in range(500):
        record_once()
    before = resident()
    for _ in range(3_000):
        record_once()
    assert abs(resident() - before) < 3_000_000  # if the traces stayed, it would be ten times as much


DEEP = """
import warnings, torch, hookviz as hv
a = torch.ones(2, requires_grad=True)
b = a
for _ in range(25_000):
    b = b * 1.0
calls = []
b.register_hook(lambda grad: calls.append(1) or grad * 3)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    with hv.record() as trace:
        b.backward(torch.tensor([1.0, 2.0]))
print([warning.category.__name__ for warning in caught], a.grad.tolist(), len(calls))
"""


def test_a_chain_that_is_too_deep_runs_unobserved_with_one_warning() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(PACKAGE).parent)}
    command = [sys.executable, "-c", DEEP]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "['HookvizWarning'] [3.0, 6.0] 1"
