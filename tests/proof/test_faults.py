"""Where a pass fails, the trace names the node and the hook, and shows what had arrived there."""

import math
from collections import Counter
from typing import Any

import pytest

from hookviz.recorder import pass_tracker

from .faults import KINDS, seen, told

FAULTS = 250
HOOKS = {kind: "fail" for kind in KINDS if kind.endswith("_hook")} | {
    "module_hook": "lambda *given: fail()",
    "wrong hook": "misfit",
}


@pytest.mark.parametrize("small", [pass_tracker.SMALL_GRAPH, 0])  # type: ignore[attr-defined]
def test_a_fault_of_any_kind_is_found_where_it_is(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pass_tracker, "SMALL_GRAPH", small)
    met: Counter[str] = Counter()
    for most, count in ((40, FAULTS), (500, FAULTS // 5)):
        find_faults(most, count, met)
    assert not [kind for kind in KINDS if met[kind] < 3]


def find_faults(most: int, count: int, met: Counter[str]) -> None:
    """Record programs of at most so many operations, each with a fault, and look at what is said of it."""
    for number in range(count):
        fault = told(number, most)
        if fault["raised"] is None:
            assert fault["node"] is None
            continue
        met[fault["kind"]] += 1
        assert fault["error"] and fault["error"][:40] in fault["raised"] + ": "
        assert fault["hook"] == HOOKS.get(fault["kind"]), number
        if fault["kind"] not in HOOKS:
            check(number, fault, most)


def check(number: int, fault: dict[str, Any], most: int) -> None:
    """The node is the one that torch was in, and what had arrived there is what torch gave it."""
    plain = seen(number, most)
    assert fault["node"] is not None and fault["node"][1] == plain.op, (number, fault, plain.op)
    shown = {output: row[3] for kind, output, row in fault["arrived"] if row is not None}
    assert len(shown) >= sum(grad is not None for grad in plain.given), (number, fault)
    for output, numbers in shown.items():
        assert same(numbers, plain.given[output]), (number, fault, plain.given)


def same(one: Any, other: Any) -> bool:
    """Whether two gradients have the same numbers, to the last bit."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other or (math.isnan(one) and math.isnan(other)))
