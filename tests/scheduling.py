"""Distribution of tests to processes for pytest-xdist."""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

ROOT = Path(__file__).parent.parent
LAB_FIXTURES = re.compile(r"\b(?:open_page|lesson)\b: ")
"""A parameter whose fixture, in ``tests/browser/conftest.py``, uses the JupyterLab server that tests share."""


class ByFileOrServer(LoadFileScheduling):
    """Keep the tests of a file in one process, and all that share JupyterLab, so that it and its page start once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "JupyterLab" if shares_lab(file) else file

    def remove_node(self, node: WorkerController) -> str | None:
        """Distribute what a process has left, except the test during which it died, which this returns.

        xdist would run that test again, and one that hangs would end each process in turn. It would also distribute
        the files that are done: a process that gets such a file has no test to report, and never gets another file.
        """
        files = self.assigned_work[node]
        died_in = next((test for tests in files.values() for test, is_done in tests.items() if not is_done), None)
        for tests in files.values():
            if died_in in tests:
                tests[died_in] = True
        self.assigned_work[node] = {file: tests for file, tests in files.items() if not all(tests.values())}
        super().remove_node(node)
        return died_in


@cache
def shares_lab(file: str) -> bool:
    """Whether a file of tests uses the shared JupyterLab."""
    return file.startswith("tests/browser/test_") and LAB_FIXTURES.search((ROOT / file).read_text("utf-8")) is not None
