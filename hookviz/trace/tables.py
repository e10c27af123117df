"""The tables of a trace, and the names, values and hooks that are looked up in them."""

from dataclasses import dataclass, field
from typing import Annotated, Any

from hookviz.support.messages import say
from hookviz.support.source_code import Source
from hookviz.trace.code_rows import LineRow, SourceRow
from hookviz.trace.columns import Between, CallIndex, HookIndex, NodeIndex
from hookviz.trace.compact_rows import CompactRows, StepRows, ValueRows
from hookviz.trace.hooks import Hook
from hookviz.trace.lookup import Lookup, table_sizes
from hookviz.trace.missing_rows import CutRow, MissingRow
from hookviz.trace.notes import Note
from hookviz.trace.rows import (
    MODULE_HOOK_KINDS,
    STEP_HOOK_KINDS,
    CallRow,
    HookPlace,
    HookRow,
    ModuleRow,
    SavedRow,
    ScaleRow,
    StepRow,
    TensorRow,
)
from hookviz.trace.tensor_names import TensorNames
from hookviz.trace.training_rows import NonfiniteRow, ParameterRow, UpdateRow
from hookviz.trace.unfired_rows import UnfiredRow
from hookviz.trace.value_rows import StatisticsMode, ValueRow
from hookviz.trace.values import Value, Values


@dataclass(repr=False)
class TraceTables:
    """The tables of a trace, and the lookup of names, values and hooks in them."""

    ops: list[str] = field(default_factory=list)
    edges: dict[tuple[NodeIndex, int], tuple[NodeIndex, int]] = field(default_factory=dict)
    """(node, slot) → (next node, its output): the edges along which gradients flow."""
    tensors: list[TensorRow] = field(default_factory=list)
    saved: list[SavedRow] = field(default_factory=list)
    rank: int | None = None
    """The rank of this process among ``ranks`` processes of ``torch.distributed``; None without it."""
    ranks: int | None = None
    """The number of these processes; None without ``torch.distributed``."""
    scales: list[ScaleRow] = field(default_factory=list)
    hook_rows: list[HookRow] = field(default_factory=list)
    values: list[ValueRow] = field(default_factory=ValueRows)
    rows: list[StepRow] = field(default_factory=StepRows)
    modules: list[ModuleRow] = field(default_factory=list)
    calls: list[CallRow] = field(default_factory=list)
    optimizers: list[ModuleRow] = field(default_factory=list)
    parameters: list[ParameterRow] = field(default_factory=list)
    """The parameters of the models and of the optimizers, if an optimizer took a step."""
    nonfinite: list[NonfiniteRow] = field(default_factory=list)
    """The parameters and buffers that put NaN into the output of a module."""
    updates: list[UpdateRow] = field(default_factory=list)
    """What each optimizer step was given, in order."""
    owners: dict[NodeIndex, CallIndex] = field(default_factory=dict)
    """Node → the innermost module call that made it."""
    outside: set[NodeIndex] = field(default_factory=set)
    """The nodes at the border of the recording: observed nodes lead to them, they themselves were not observed."""
    statistics: StatisticsMode | None = None
    """Which statistics were read of tensors with more than 64 numbers: all, or only the norm while it is finite.

    None for the rule: the norm of very large ones, and all statistics of the others.
    """
    remarks: list[Note] = field(default_factory=list)
    """What could not be observed, and why; ``notes`` has the sentences."""
    dropped: int = 0
    """The number of earlier passes, nested ones included, that ``record(keep=...)`` has dropped."""
    roots: list[list[tuple[NodeIndex, int]]] = field(default_factory=list)
    """For each pass, the (node, output) pairs at which it starts."""
    pass_numbers: list[Annotated[int, Between(1, 2**53)]] = field(default_factory=list)
    """The number of each pass among all that ran during the recording, from 1."""
    hooked: list[list[HookIndex]] = field(default_factory=list)
    """For each pass, the hooks that were registered on its graph, as indexes of ``hook_rows``."""
    missing_rows: list[MissingRow] = field(default_factory=list)
    cut_rows: list[CutRow] = field(default_factory=list)
    """The parameters that belonged to the graph of no pass, and the ops that cut them off, if ops were followed."""
    unfired_rows: list[UnfiredRow] = field(default_factory=list)
    """The hooks that were registered at some time of the recording and did not fire, with what explains it."""
    sources: list[SourceRow] = field(default_factory=list)
    """The texts of the user's code that ``lines`` refer to."""
    lines: list[LineRow] = field(default_factory=list)
    """Where the user's code starts the passes and calls the modules, as far as that is known."""
    _lookup: Lookup | None = field(default=None, init=False, compare=False)
    _naming: TensorNames | None = field(default=None, init=False, compare=False)
    _hook_indexes: dict[HookRow, int] = field(default_factory=dict, init=False, compare=False)
    _listed_hooks: dict[int, set[int]] = field(default_factory=dict, init=False, compare=False)
    """Pass → the same hooks as in ``hooked``, as a set, for the passes that are running."""

    def close(self) -> None:
        """End the recording: nothing is appended any more. Its compact rows are expanded when they are first needed."""
        for rows in (self.rows, self.values):
            if isinstance(rows, CompactRows):
                rows.is_closed = True

    def expand(self) -> None:
        """Expand all compact rows, once the recording is over."""
        if isinstance(self.rows, CompactRows) and self.rows.is_closed:
            self.rows = list(self.rows)
        if isinstance(self.values, CompactRows) and self.values.is_closed:
            self.values = list(self.values)

    @property
    def notes(self) -> list[str]:
        """What could not be observed, and why, in sentences."""
        return [note.text for note in self.remarks]

    def pass_number(self, pass_id: int) -> int:
        """Return the number of a pass among all that ran during the recording, counted from 1.

        ``record(keep=...)`` drops passes and ``record(every=...)`` skips them; the others keep their numbers.
        """
        if pass_id < len(self.pass_numbers):
            return self.pass_numbers[pass_id]
        return pass_id + 1 + (self.pass_numbers[-1] - len(self.pass_numbers) if self.pass_numbers else self.dropped)

    @property
    def lacks_passes(self) -> bool:
        """Whether passes ran, before or between those of the trace, that the trace does not hold."""
        last = len(self.roots) - 1
        return last >= 0 and self.pass_number(last) != last + 1  # numbers increase, so one gap moves the last

    def value(self, index: Any) -> Values:
        """Return the value with this index; a tuple for a tuple of indexes."""
        if index is None:
            return None
        if isinstance(index, int):
            return Value(*self.values[index])
        return tuple(None if i is None else Value(*self.values[i]) for i in index)

    def hook(self, index: int, place: HookPlace | None = None) -> Hook:
        """Return the hook with this index; ``place`` is its place when it fired, by default that in its last pass."""
        row = self.hook_rows[index]
        on = self._get_owner_name(row)
        place = place or self.place(index, self.lookup.last_passes.get(index))
        source = Source(row.name, row.file, row.line, row.text, row.mark)
        is_on_tensor = row.kind in ("tensor_hook", "post_accumulate_hook", "multi_grad_hook")
        is_unnamed = is_on_tensor and (row.node, row.output) not in self.naming.tensors
        variant = ".unnamed" if is_unnamed else ".global" if "global" in row.flags else ""
        return Hook(on, row.kind, source, say(f"dict.{row.kind}{variant}", on=on), *place, row.flags)

    def place(self, index: int, pass_id: int | None) -> HookPlace:
        """Return the place of a hook in its dict when a pass ran; among the hooks of all passes if that is None."""
        return self.lookup.hooks(pass_id).places[index]

    def _get_owner_name(self, row: HookRow) -> str:
        """Return the name of the tensor, node, module or optimizer that has a hook."""
        if row.kind in STEP_HOOK_KINDS:
            return self.optimizer(row.optimizer)
        return self.module(row.module) if row.kind in MODULE_HOOK_KINDS else self.name(row.node, row.output)

    def optimizer(self, index: int | None) -> str:
        """Return the name of an optimizer; None is all optimizers."""
        return say("name.optimizers") if index is None else self.optimizers[index].name

    def module(self, index: int | None) -> str:
        """Return the name of a module; None is all modules."""
        return say("name.modules") if index is None else self.modules[index].name

    def call(self, index: int) -> str:
        """Return the name of a module call: that of its module, with a number if it is not the first call."""
        row = self.calls[index]
        name = self.module(row.module)
        return name if row.number < 2 else say("name.call", module=name, number=row.number)

    def name(self, node: int | None, output: int | None = None) -> str:
        """Return the name of the tensor at an ``output`` of a node, or of the node itself; "" without a node."""
        if node in self.outside:
            return say("name.outside", name=self._get_graph_name(node, output))
        return self._get_graph_name(node, output)

    def _get_graph_name(self, node: int | None, output: int | None) -> str:
        if node is None:
            return ""
        naming, op = self.naming, self.ops[node]
        tensor = naming.tensors.get((node, output or 0))
        if output is not None and tensor is not None:
            return tensor
        if tensor is not None:
            return say("name.node", op=op, tensor=tensor)
        if output is not None and op == "AccumulateGrad":
            return say("name.leaf", number=node)
        return say("name.number", op=op, number=node) if op in naming.repeated else op

    def outputs(self, node: int) -> list[int]:
        """Return the outputs of ``node`` to which an edge leads, or at which a pass begins."""
        return self.lookup.outputs.get(node, [])

    @property
    def naming(self) -> TensorNames:
        """The names of tensors and nodes, updated while the trace grows."""
        if self._naming is None or not self._naming.update(self.ops, self.tensors):
            self._naming = TensorNames(self.ops, self.tensors)
        return self._naming

    @property
    def lookup(self) -> Lookup:
        """The tables by pass, node and call. It is rebuilt after a table has grown, so a recording must not use it."""
        if self._lookup is None or self._lookup.size != table_sizes(self):
            self._lookup = Lookup(self)
        return self._lookup

    def clear_caches(self) -> None:
        """Clear all caches after rows of a table were replaced."""
        self._lookup, self._naming, self._hook_indexes, self._listed_hooks = None, None, {}, {}

    def get_hook_index(self, row: HookRow) -> int:
        """Return the index of ``row`` in ``hook_rows``; a new hook is appended."""
        if len(self._hook_indexes) != len(self.hook_rows):
            self._hook_indexes = {known_row: index for index, known_row in enumerate(self.hook_rows)}
        index = self._hook_indexes.setdefault(row, len(self.hook_rows))
        if index == len(self.hook_rows):
            self.hook_rows.append(row)
        return index

    def list_hook(self, pass_id: int, index: int) -> None:
        """Add a hook to ``hooked`` of a pass, unless it is there; a set makes that quick for thousands of hooks."""
        listed = self._listed_hooks.get(pass_id)
        if listed is None:
            listed = self._listed_hooks[pass_id] = set(self.hooked[pass_id])
        if index not in listed:
            listed.add(index)
            self.hooked[pass_id].append(index)

    def forget_listed_hooks(self, pass_id: int) -> None:
        """Free the set of hooks of a pass that has ended."""
        self._listed_hooks.pop(pass_id, None)

    def get_subject_name(self, row: StepRow) -> str:
        """Return the name of the optimizer, module call, node or tensor that a step is about."""
        if row.optimizer is not None:
            return self.optimizer(row.optimizer)
        return self.call(row.call) if row.call is not None else self.name(row.node, row.output)

    def at(self, step: int) -> int:
        """Convert ``step`` to an index from 0; a negative number counts from the end.

        Raises:
            IndexError: there is no such step.
            TypeError: ``step`` is not an integer.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(say("error.step.type", kind=type(step).__name__))
        if not -len(self.rows) <= step < len(self.rows):
            key = "error.step" if self.rows else "error.step.empty"
            raise IndexError(say(key, step=step, last=len(self.rows) - 1))
        return step % len(self.rows)
