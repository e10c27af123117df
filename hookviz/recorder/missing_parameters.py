"""Finds the parameters that belonged to the graph of no pass."""

import weakref
from collections.abc import Iterator, Sequence

import torch

from hookviz.autograd import module_tree
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.hook_owners import ModuleEvidence
from hookviz.trace import MissingRow, TraceData

MAX_PARAMETERS = 2_000
"""A trace names up to this many parameters without a gradient."""


class MissingParameters:
    """Writes at the end a row for each parameter, of the given models and of what was called, without a gradient."""

    def __init__(
        self, trace: TraceData, calls: CallTracker, uses: ModuleEvidence, models: Sequence[torch.nn.Module]
    ) -> None:
        self.trace, self.calls, self.uses = trace, calls, uses
        self._models = [weakref.ref(model) for model in models]

    def close(self) -> None:
        """Write the rows, if passes were recorded, and as a whole."""
        if not self.trace.roots or self.calls.module_filter.patterns is not None:
            return
        for module in self._modules():
            for name, parameter in module_tree.own_parameters(module):
                is_missing = parameter.requires_grad and self.uses.are_used([parameter]) is None
                if is_missing and len(self.trace.missing_rows) < MAX_PARAMETERS:
                    owner = self.calls.modules.label(module)
                    number = self.calls.modules.find_number(module)
                    self.trace.missing_rows.append(MissingRow(f"{owner}.{name}", owner, number))

    def _modules(self) -> Iterator[torch.nn.Module]:
        """Yield each module of the given models, and each other one that was called."""
        known: set[int] = set()
        models = (model for reference in self._models if (model := reference()) is not None)
        given = (module for model in models for module in module_tree.all_modules(model))
        called = (module for _, module in self.calls.modules.alive_modules())
        for module in (*given, *called):
            if id(module) not in known:
                known.add(id(module))
                yield module
