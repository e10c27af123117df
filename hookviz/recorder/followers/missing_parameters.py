"""Finds the parameters that belonged to the graph of no pass."""

from collections.abc import Mapping

import torch

from hookviz.autograd import module_tree, variable_names
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.cut_tracker import CutTracker
from hookviz.recorder.followers.hook_owners import ModuleEvidence
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.trace import MissingRow, TraceData

MAX_PARAMETERS = 2_000
"""A trace names up to this many parameters without a gradient."""


class MissingParameters(Follower):
    """Writes at the end a row for each parameter, of the given models and of what was called, without a gradient.

    If the ops were followed, also for each tensor without a module that a cut is known to have cut off.
    """

    def __init__(
        self,
        trace: TraceData,
        calls: CallTracker,
        uses: ModuleEvidence,
        cuts: CutTracker | None,
        names: Mapping[str, torch.Tensor],
    ) -> None:
        self.trace, self.calls, self.uses, self.cuts, self.names = trace, calls, uses, cuts, names

    def close(self) -> None:
        """Write the rows, if passes were recorded, and as a whole."""
        if not self.trace.roots or self.calls.followed.are_part:
            return
        modules = self.calls.modules
        known: set[int] = set()
        for owner, module in modules.called_or_given_modules():
            for name, parameter in module_tree.own_parameters(module):
                known.add(id(parameter))
                if parameter.requires_grad and self.uses.are_used([parameter]) is None:
                    self._add(parameter, f"{owner}.{name}", owner, modules.find_number(module))
        if self.cuts is not None:
            self._add_other_leaves(self.cuts, known)

    def _add_other_leaves(self, cuts: CutTracker, known: set[int]) -> None:
        """Write a row for each leaf in a variable, outside of these modules, that a cut has cut off."""
        variables = variable_names.tensor_variables(variable_names.caller_frame(), with_modules=False)
        for name, tensor in (*self.names.items(), *variables.items()):
            is_new = tensor.is_leaf and tensor.requires_grad and id(tensor) not in known
            if is_new and not cuts.is_used(tensor) and cuts.rows_of(tensor):
                known.add(id(tensor))
                self._add(tensor, name, "", None)

    def _add(self, leaf: torch.Tensor, name: str, owner: str, module: int | None) -> None:
        if len(self.trace.missing_rows) < MAX_PARAMETERS:
            cuts = () if self.cuts is None else self.cuts.rows_of(leaf)
            self.trace.missing_rows.append(MissingRow(name, owner, module, cuts))
