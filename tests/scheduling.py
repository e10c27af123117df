"""Distribution of tests to processes for pytest-xdist."""

import re

from xdist.scheduler import LoadFileScheduling


class ByFileOrLesson(LoadFileScheduling):
    """Keep the tests of a file in one process, and the browser tests of a lesson in one process across files.

    Opening and running a lesson takes longer than its tests, so each lesson is opened in one process only.
    """

    def _split_scope(self, nodeid: str) -> str:
        lesson = re.match(r"tests/browser/.*\[(\d\d_\w+\.ipynb)\]$", nodeid)
        return lesson[1] if lesson else super()._split_scope(nodeid)
