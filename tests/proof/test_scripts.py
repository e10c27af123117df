"""Recording does not change the scripts, and leaves no objects, patches or memory behind."""

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

from .compare import PACKAGE, Watch, garbage_collection_off, package_frames, plain, same
from .scripts import SCRIPTS
from .show import process_state, run_script
from .wrong import WRONG, kept_gradients, leave_patch_behind

both_scopes = pytest.mark.parametrize("whole", [False, True], ids=["around the pass", "around everything"])


def check(name: str, watch: Watch, whole: bool) -> dict[str, Any]:
    """Assert that a script has the same report with and without the watch, and return the report with it."""
    warm_up(name)
    # Both runs start from one line, because some of torch's warnings show the stack.
    plainly, recorded = (run_and_check_process_state(name, each, whole) for each in (plain, watch))
    same(plainly, recorded, name)
    return recorded


@cache
def warm_up(name: str) -> None:
    """Run a script once, so that one-time initialisation of torch is done."""
    run_script(SCRIPTS[name], plain, whole=False)


def run_and_check_process_state(name: str, watch: Watch, whole: bool) -> dict[str, Any]:
    """Run a script, and assert that it restores the state of the process."""
    before = process_state()
    report = run_script(SCRIPTS[name], watch, whole)
    same(before, process_state(), f"what {name} left behind")
    return report


@both_scopes
@pytest.mark.parametrize("name", SCRIPTS)
def test_recording_a_script_changes_nothing_observable(name: str, whole: bool) -> None:
    recorded = check(name, hv.record, whole)
    assert not package_frames(recorded["failure"])


def test_recorder_sees_both_hooks() -> None:
    """The other tests would pass with a recorder that does nothing."""
    a = torch.tensor(2.0, requires_grad=True)
    c = a * 3
    c.register_hook(lambda grad: grad + 2)
    a.register_hook(lambda grad: None)
    with hv.record() as trace:
        c.backward()
    assert len(trace.firings) == 2


@pytest.mark.parametrize("fault", WRONG)
def test_faulty_recorder_is_detected_by_the_scripts(fault: str) -> None:
    with pytest.raises(AssertionError, match="differs at"):
        check_all(WRONG[fault])
    kept_gradients.clear()


def check_all(watch: Watch) -> None:
    for name in SCRIPTS:
        check(name, watch, whole=False)


def test_patch_left_behind_is_detected() -> None:
    engine = torch.autograd.graph._engine_run_backward
    try:
        with pytest.raises(AssertionError, match="left behind"):
            check("a_diamond", leave_patch_behind, whole=False)
    finally:
        torch.autograd.graph._engine_run_backward = engine


def hookviz_objects() -> Counter[str]:
    """Count the live objects of hookviz, except for cached sources of functions."""
    gc.collect()
    kinds = Counter(map(str, map(type, gc.get_objects())))
    return Counter({kind: count for kind, count in kinds.items() if "'hookviz." in kind and "Source" not in kind})


def test_no_hookviz_objects_remain_after_a_trace_is_deleted() -> None:
    check("a_diamond", hv.record, whole=True)
    before = hookviz_objects()
    for name in ("the_picture_with_hooks", "double_backward", "a_tensor_hook_raises", "a_module_with_hooks"):
        run_script(SCRIPTS[name], hv.record, whole=True)
    assert hookviz_objects() == before


def build_graph(hook: Callable[[torch.Tensor], Any]) -> tuple[torch.Tensor, list[weakref.ref[torch.Tensor]]]:
    """Return the root of a graph with hooks, and weak references to tensors that must be freed with it."""
    a = torch.randn(3, requires_grad=True)
    b = a.exp() * a
    c = b.sin()
    for tensor in (a, b, c):
        tensor.register_hook(hook)
    b.retain_grad()
    root = c.sum()
    return root, [weakref.ref(tensor) for tensor in (a, b, c, root)]


@pytest.mark.parametrize("keep_trace", [False, True], ids=["without the trace", "while the trace lives"])
def test_graph_is_freed_directly_after_its_recording(keep_trace: bool) -> None:
    traces = []
    with garbage_collection_off():
        with hv.record() as trace:
            root, references = build_graph(lambda grad: grad * 2)
            root.backward()
        traces.append(trace)
        if not keep_trace:
            traces.clear()
            del trace
        del root
        assert [reference() for reference in references] == [None] * 4


def test_gradient_is_freed_during_the_pass() -> None:
    """The gradient of the first hook is freed before the last hook runs."""
    references: list[weakref.ref[torch.Tensor]] = []
    was_freed: list[bool] = []
    a = torch.randn(100, requires_grad=True)
    b = a.exp()
    c = b.sin()
    c.register_hook(lambda grad: references.append(weakref.ref(grad)))
    a.register_hook(lambda grad: was_freed.append(references[0]() is None))
    with garbage_collection_off(), hv.record():
        c.sum().backward()
    assert was_freed == [True]


def record_once() -> None:
    """Record a small pass."""
    with hv.record():
        root, _ = build_graph(lambda grad: grad * 2)
        root.backward()


def resident_bytes() -> int:
    """Return the resident memory of this process in bytes."""
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def test_hundreds_of_recordings_do_not_leak_memory() -> None:
    for _ in range(200):
        record_once()
    before = resident_bytes()
    for _ in range(400):
        record_once()
    assert abs(resident_bytes() - before) < 1_500_000  # leaked traces would take twice as much


DEEP_CHAIN = """
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


def test_too_deep_chain_runs_unobserved_with_one_warning() -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(PACKAGE).parent)}
    command = [sys.executable, "-c", DEEP_CHAIN]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "['HookvizWarning'] [3.0, 6.0] 1"
