"""Finds by which path a module was called that a model holds at several."""

from collections import Counter
from itertools import islice

import torch

from hookviz.autograd import module_tree
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.trace import CallRow, TraceData

Module = torch.nn.Module
MAX_PATHS = 10_000
"""Modules that share modules that share modules may have many more; then a call has the name of its module."""


class SharedPaths:
    """Names the calls of shared modules, and of what is in them, by the modules that made the calls."""

    def __init__(self, trace: TraceData, modules: ModuleRegistry) -> None:
        self.trace, self.modules = trace, modules
        self._paths: dict[tuple[int, int], str] = {}
        """Numbers of two modules → the only path from the first to the second; empty if there are several, or none."""
        self._counts: Counter[tuple[int, str]] = Counter()
        """Number of a module and path → the calls so far."""

    def add_path(self, row: CallRow, module: Module, caller: Module | None) -> CallRow:
        """Return the row of a call with its path, if the module, or one around it that runs, has several."""
        name = self.trace.modules[row.module].name
        around = None if row.parent is None else self.trace.calls[row.parent]
        is_inside = around is not None and bool(around.nth)
        if not is_inside and not self.modules.is_shared(name):
            return row
        path = "" if around is None or caller is None else self._find_path(around, row.module, caller, module)
        path = "" if path == name else path
        self._counts[row.module, path] += 1
        return row._replace(path=path, nth=self._counts[row.module, path])

    def _find_path(self, around: CallRow, number: int, caller: Module, module: Module) -> str:
        key = around.module, number
        if key not in self._paths:
            pairs = list(islice(module_tree.named_modules(caller, every_path=True), MAX_PATHS))
            paths = [path for path, inner in pairs if inner is module]
            self._paths[key] = paths[0] if len(paths) == 1 and len(pairs) < MAX_PATHS else ""
        outer = around.path or self.trace.modules[around.module].name
        return f"{outer}.{self._paths[key]}" if self._paths[key] else ""
