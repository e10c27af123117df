"""Finds the parameters that belonged to the graph of no pass."""

from hookviz.autograd import module_tree
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.hook_owners import ModuleEvidence
from hookviz.trace import MissingRow, TraceData

MAX_PARAMETERS = 2_000
"""A trace names up to this many parameters without a gradient."""


class MissingParameters:
    """Writes at the end a row for each parameter, of the given models and of what was called, without a gradient."""

    def __init__(self, trace: TraceData, calls: CallTracker, uses: ModuleEvidence) -> None:
        self.trace, self.calls, self.uses = trace, calls, uses

    def close(self) -> None:
        """Write the rows, if passes were recorded, and as a whole."""
        if not self.trace.roots or self.calls.module_filter.patterns is not None:
            return
        modules = self.calls.modules
        for owner, module in modules.called_or_given_modules():
            for name, parameter in module_tree.own_parameters(module):
                is_missing = parameter.requires_grad and self.uses.are_used([parameter]) is None
                if is_missing and len(self.trace.missing_rows) < MAX_PARAMETERS:
                    self.trace.missing_rows.append(MissingRow(f"{owner}.{name}", owner, modules.find_number(module)))
