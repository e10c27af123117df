"""Distribution of tests to processes for pytest-xdist."""

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parent.parent
LAB_FIXTURES = re.compile(r"\b(?:open_page|lesson)\b: ")
"""A parameter whose fixture, in ``tests/browser/conftest.py``, uses the JupyterLab server that tests share."""


class ByFileOrServer(LoadFileScheduling):
    """Keep the tests of a file in one process, and all that share JupyterLab, so that it and its page start once."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "JupyterLab" if shares_lab(file) else file


@cache
def shares_lab(file: str) -> bool:
    """Whether a file of tests uses the shared JupyterLab."""
    return file.startswith("tests/browser/test_") and LAB_FIXTURES.search((ROOT / file).read_text("utf-8")) is not None
