"""Notes of each parameter whether it required grad when its module was called, and which passes had it in their graph.

A model may be gone when the recording ends: what is said about its parameters is known by then.
"""

import weakref
from collections.abc import Iterable, Mapping
from itertools import chain, count
from operator import attrgetter
from typing import TypeGuard

import torch

from hookviz.autograd import module_tree, variable_names
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.torch_internals import next_sequence_number, read_grad
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.cut_tracker import CutTracker
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.support.groups import group
from hookviz.support.user_objects import is_of
from hookviz.trace import MissingRow, TraceData

MAX_PARAMETERS = 2_000
"""A trace names up to this many parameters without a gradient."""


def _is_parameter(leaf: object) -> TypeGuard[torch.nn.Parameter]:
    return type(leaf) is not torch.Tensor and isinstance(leaf, torch.nn.Parameter)


def _may_be_parameter(wanted: object) -> bool:
    """Return whether a pass that is limited to ``wanted``, a tensor or an edge, may give a parameter its gradient."""
    return not isinstance(wanted, torch.Tensor) or _is_parameter(wanted)


class ParameterEntry:
    """What is known of one parameter."""

    def __init__(self, parameter: torch.Tensor, number: int) -> None:
        self.reference = weakref.ref(parameter)
        self.number = number
        """How many were known before."""
        self.name = ""
        """Its name in its module; empty if its module was not called."""
        self.module: int | None = None
        """The number of its module."""
        self.requires_grad = False
        """Whether it required grad when its module was called last."""
        self.was_trainable = False
        """Whether it did at any call."""
        self.is_thawed = False
        """Whether it required grad when a pass began, and had not when its module was called last."""
        self.passes = 0
        """To the graph of how many passes it belonged."""
        self.had_grad = parameter.is_leaf and read_grad(parameter) is not None  # of another tensor torch would warn
        """Whether it had a gradient when it was first met."""
        self.is_shard = type(parameter).__name__ == "DTensor" or not parameter.is_leaf
        """Whether it is a part of a tensor, or a view of one: FSDP gathers the whole one for a call."""
        self.is_older = False
        """Whether a part of such a graph was made before the recording."""


class ParameterLedger(Follower):
    """Follows the parameters of modules that are called, and those in graphs. Names the ones without a gradient."""

    def __init__(
        self,
        trace: TraceData,
        calls: CallTracker,
        cuts: CutTracker | None,
        names: Mapping[str, torch.Tensor],
    ) -> None:
        self.trace, self.calls, self.cuts, self.names = trace, calls, cuts, names
        self._entries: dict[int, ParameterEntry] = {}
        self._numbers = count()
        self._gone: list[ParameterEntry] = []
        """The entries of parameters that are gone, and whose ``id`` another one has."""
        self._frozen: dict[int, ParameterEntry] = {}
        """The entries of parameters that did not require grad when their module was called last."""
        self._transformed: IdentityMap[bool] = IdentityMap()
        """Module → True if a transform of ``torch.func`` called it."""
        self._first_node: int = next_sequence_number()
        self.used: dict[str, int] = {}
        """Name of a parameter → in how many passes it belonged to the graph."""
        self.older: set[str] = set()
        """The names of those whose graph was partly made before the recording, perhaps in a call of their module."""
        self._stood_in: set[tuple[int | None, str]] = set()
        """Module and name of the parameters in whose place another tensor was when their module was called."""
        self._are_wanted = False
        """Whether a pass could give parameters a gradient; one that is limited to other tensors gives them none."""

    def call_written(self, call: int, module: torch.nn.Module) -> None:
        """Note the parameters of a module that is called; in a transform of ``torch.func`` others stand for them."""
        if self.trace.calls[call].transformed:
            self._transformed.put(module, True)
            return
        used = module_tree.own_parameters(module)
        if is_of(module, torch.nn.MultiheadAttention):  # it uses those of its projection without a call
            used = chain(used, ((f"out_proj.{name}", one) for name, one in module_tree.own_parameters(module.out_proj)))
        number = self.trace.calls[call].module
        for name, parameter in used:
            if not _is_parameter(parameter):  # functional_call puts it there for this call
                self._stood_in.add((number, name))
                continue
            entry = self.entry_of(parameter)
            entry.name, entry.module = name, number
            entry.requires_grad = parameter.requires_grad
            if not entry.requires_grad:
                self._frozen[id(parameter)] = entry
            entry.was_trainable = entry.was_trainable or entry.requires_grad

    def entry_of(self, parameter: torch.Tensor) -> ParameterEntry:
        """Return what is known of a parameter, which gets an entry if it has none."""
        entry = self._entries.get(id(parameter))
        if entry is not None and entry.reference() is not parameter:
            if len(self._gone) < MAX_PARAMETERS:
                self._gone.append(entry)
            entry = None
        if entry is None:
            entry = self._entries[id(parameter)] = ParameterEntry(parameter, next(self._numbers))
        return entry

    def find_entry(self, parameter: torch.Tensor) -> ParameterEntry | None:
        """Return what is known of a parameter."""
        entry = self._entries.get(id(parameter))
        return entry if entry is not None and entry.reference() is parameter else None

    @property
    def has_entries(self) -> bool:
        """Whether any parameter is known."""
        return bool(self._entries)

    def count_uses(self, parameters: Iterable[torch.Tensor]) -> tuple[int, bool] | None:
        """Return the passes that had the first of ``parameters`` that any had, and whether their graph is older."""
        found = (entry for one in parameters if (entry := self.find_entry(one)) is not None and entry.passes)
        return next(((entry.passes, entry.is_older) for entry in found), None)

    def pass_begins(self, start: PassStart) -> None:
        """Note which parameters belong to the graph of a pass, and which were unfrozen too late for that."""
        self._are_wanted = self._are_wanted or not start.inputs or any(map(_may_be_parameter, start.inputs))
        for entry in self._frozen.values():
            parameter = entry.reference()
            entry.is_thawed = parameter is not None and parameter.requires_grad
        leaves = (reference() for reference in start.snapshot.leaves.values())
        parameters = [leaf for leaf in leaves if _is_parameter(leaf)]
        if not parameters:
            return
        is_older = start.snapshot.lowest_sequence < self._first_node
        names: dict[int, str] = {}
        for name, tensor in start.names.items():
            names.setdefault(id(tensor), name)
        for leaf in parameters:
            entry = self.entry_of(leaf)
            entry.passes += 1
            entry.is_older = is_older
            name = names.get(id(leaf), "")
            self.used[name] = self.used.get(name, 0) + 1
            if is_older:
                self.older.add(name)

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget what was seen of a parameter, and the reference to it."""
        self._entries.pop(id(tensor), None)
        self._frozen.pop(id(tensor), None)

    def close(self) -> None:
        """Write a row for each parameter without a gradient, if passes were recorded, and as a whole.

        These are the parameters of the given models and of what was called; if the ops were followed, also each tensor
        without a module that a cut is known to have cut off. Nothing is missing where no pass was to give them any.
        """
        if not (self.trace.roots and self._are_wanted) or self.calls.followed.are_part:
            return
        known_entries = sorted((*self._gone, *self._entries.values()), key=attrgetter("number"))
        called = group(((entry.module, entry.name), entry) for entry in known_entries if entry.module is not None)
        for (module, _name), entries in sorted(called.items(), key=lambda item: item[0][0]):
            # Several parameters took turns there, as in functional_call: one with a gradient speaks for all.
            if len(entries) == 1 or not any(entry.passes or _is_filled(entry) for entry in entries):
                self._add_called(entries[-1], self.trace.modules[module].name)
        known = {key for key, entry in self._entries.items() if entry.reference() is not None}
        if all(note.fact != "profiled" for note in self.trace.remarks):
            self._add_given(known)
        if self.cuts is not None:
            self._add_other_leaves(self.cuts, known)

    def _add_called(self, entry: ParameterEntry, owner: str) -> None:
        parameter = entry.reference()
        if _is_filled(entry) or entry.is_shard:  # its gradient comes from a tensor that stands for it, as under FSDP
            return
        at_the_end = entry.requires_grad or entry.is_thawed
        requires_grad = at_the_end if parameter is None else parameter.requires_grad
        if requires_grad and not entry.passes:
            cuts = () if self.cuts is None else self.cuts.rows_of(entry.reference)
            self._add(MissingRow(f"{owner}.{entry.name}", owner, entry.module, cuts, not entry.was_trainable))

    def _add_given(self, known: set[int]) -> None:
        """Write the rows of what was not called in the given models."""
        modules = self.calls.modules
        for model in modules.given_models():
            for module in module_tree.all_modules(model):
                if self._transformed.get(module):
                    continue
                owner = modules.name_within(model, module)
                for name, parameter in module_tree.own_parameters(module):
                    entry = self.find_entry(parameter)
                    if (modules.find_number(module), name) in self._stood_in:
                        continue
                    if parameter.requires_grad and (entry is None or not (entry.passes or entry.module is not None)):
                        known.add(id(parameter))
                        cuts = () if self.cuts is None else self.cuts.rows_of(weakref.ref(parameter))
                        self._add(MissingRow(f"{owner}.{name}", owner, modules.find_number(module), cuts))

    def _add_other_leaves(self, cuts: CutTracker, known: set[int]) -> None:
        """Write a row for each leaf in a variable, outside of these modules, that a cut has cut off."""
        variables = variable_names.tensor_variables(variable_names.caller_frame(), with_modules=False)
        for name, tensor in (*self.names.items(), *variables.items()):
            is_new = tensor.is_leaf and tensor.requires_grad and id(tensor) not in known
            rows = cuts.rows_of(weakref.ref(tensor)) if is_new and not cuts.is_used(tensor) else ()
            if rows:
                known.add(id(tensor))
                self._add(MissingRow(name, "", None, rows))

    def _add(self, row: MissingRow) -> None:
        if len(self.trace.missing_rows) < MAX_PARAMETERS:
            self.trace.missing_rows.append(row)


def _is_filled(entry: ParameterEntry) -> bool:
    """Whether a parameter has a gradient that it did not have when it was first met."""
    parameter = entry.reference()
    return parameter is not None and not entry.had_grad and read_grad(parameter) is not None
