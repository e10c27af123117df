"""Which tests run in one process when several processes share them."""

import re

from xdist.scheduler import LoadFileScheduling


class ByFileOrLesson(LoadFileScheduling):
    """The tests of a file stay together, but those of a lesson that is open in JupyterLab do so across files.

    To open and run a lesson takes longer than its tests: it is done once, and the lessons are shared out.
    """

    def _split_scope(self, nodeid: str) -> str:
        lesson = re.match(r"tests/browser/.*\[(\d\d_\w+\.ipynb)\]$", nodeid)
        return lesson[1] if lesson else super()._split_scope(nodeid)
