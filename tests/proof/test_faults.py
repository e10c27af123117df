"""If a pass fails, the trace names the node and the hook, and has the gradients that arrived there."""

import math
import os
from collections import Counter
from typing import Any

import pytest

from hookviz.recorder.passes import pass_tracker

from .faults import KINDS, run_recorded, run_unrecorded

FAULT_COUNT = int(os.environ.get("HOOKVIZ_FAULTS", 120))
"""The number of programs; set it higher for a longer search."""
HOOK_NAMES = {kind: "fail" for kind in KINDS if kind.endswith("_hook")} | {
    "module_hook": "lambda *given: fail()",
    "wrong hook": "misfit",
}


@pytest.mark.parametrize("small_graph", [pass_tracker.SMALL_GRAPH, 0])  # type: ignore[attr-defined]
def test_trace_names_the_node_and_hook_of_every_kind_of_fault(
    small_graph: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_tracker, "SMALL_GRAPH", small_graph)
    counts: Counter[str] = Counter()
    for max_length, count in ((40, FAULT_COUNT), (500, FAULT_COUNT // 5)):
        check_faults(max_length, count, counts)
    assert not [kind for kind in KINDS if counts[kind] < 2]


def check_faults(max_length: int, count: int, counts: Counter[str]) -> None:
    """Record ``count`` programs with one fault each, and check what their traces say about it."""
    for number in range(count):
        fault = run_recorded(number, max_length)
        if fault["raised"] is None:
            assert fault["error"] is None
            continue
        counts[fault["kind"]] += 1
        assert fault["error"] and fault["error"][:40] in fault["raised"] + ": "
        assert fault["hook"] == HOOK_NAMES.get(fault["kind"]), number
        if fault["kind"] not in HOOK_NAMES:
            check_node(number, fault, max_length)


def check_node(number: int, fault: dict[str, Any], max_length: int) -> None:
    """Check that the trace names the failing node, with the gradients that torch passed to it."""
    observer = run_unrecorded(number, max_length)
    assert fault["op"] == observer.op, (number, fault, observer.op)
    shown = fault["arrived"]
    assert len(shown) >= sum(grad is not None for grad in observer.given), (number, fault)
    for output, numbers in shown.items():
        assert equal_gradients(numbers, observer.given[output]), (number, fault, observer.given)


def equal_gradients(recorded: Any, expected: Any) -> bool:
    """Whether two gradients have equal numbers; NaN equals NaN."""
    if isinstance(recorded, list) and isinstance(expected, list):
        return len(recorded) == len(expected) and all(map(equal_gradients, recorded, expected))
    return bool(recorded == expected or (math.isnan(recorded) and math.isnan(expected)))
