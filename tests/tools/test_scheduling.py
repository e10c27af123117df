"""The distribution of tests after a process died."""

from types import SimpleNamespace
from typing import Any

from tests.scheduling import ByFileOrServer


class Node:
    """Stands for a process of pytest-xdist, and keeps which tests it was asked to run."""

    shutting_down = False

    def __init__(self) -> None:
        self.asked: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.asked += indices


def test_what_a_process_had_left_is_run_elsewhere_without_the_test_that_ended_it() -> None:
    tests = ["a.py::done", "b.py::hangs", "b.py::left"]
    config: Any = SimpleNamespace(getvalue=lambda name: ["popen", "popen"])
    scheduler = ByFileOrServer(config, None)
    died, other = Node(), Node()
    nodes: Any = scheduler.assigned_work
    nodes.update({died: {"a.py": {tests[0]: True}, "b.py": {tests[1]: False, tests[2]: False}}, other: {}})
    scheduler.registered_collections[other] = tests  # type: ignore[index]

    assert scheduler.remove_node(died) == "b.py::hangs"  # type: ignore[arg-type]

    assert other.asked == [2]
    assert not scheduler.workqueue
