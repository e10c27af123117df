"""The tables of a trace: rows of plain data, and the names and places that follow from them."""

from dataclasses import dataclass, field
from typing import Any

from hookviz.support.messages import say
from hookviz.support.source_code import Source
from hookviz.trace.folded_rows import CompactRows, StepRows, ValueRows
from hookviz.trace.hooks import Hook
from hookviz.trace.lookup import Lookup, table_sizes
from hookviz.trace.naming import Naming
from hookviz.trace.notes import Note
from hookviz.trace.reason_rows import ReasonRow, StepReasons
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
from hookviz.trace.value_rows import StatisticsMode, ValueRow
from hookviz.trace.values import Value, Values


@dataclass(repr=False)
class TraceTables:
    """The rows of a trace, and what can be looked up in them."""

    ops: list[str] = field(default_factory=list)
    edges: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(node, which of its inputs) → (node, which of its outputs): the way of gradients."""
    tensors: list[TensorRow] = field(default_factory=list)
    saved: list[SavedRow] = field(default_factory=list)
    rank: int | None = None
    """Which of ``ranks`` processes this was, where several computed together (``torch.distributed``)."""
    ranks: int | None = None
    scales: list[ScaleRow] = field(default_factory=list)
    hook_rows: list[HookRow] = field(default_factory=list)
    values: list[ValueRow] = field(default_factory=ValueRows)
    rows: list[StepRow] = field(default_factory=StepRows)
    modules: list[ModuleRow] = field(default_factory=list)
    calls: list[CallRow] = field(default_factory=list)
    optimizers: list[ModuleRow] = field(default_factory=list)
    owners: dict[int, int] = field(default_factory=dict)
    """Node's number → the innermost module call that made it."""
    outside: set[int] = field(default_factory=set)
    """The nodes that were not observed, and to which nodes that were lead: beyond them the recording does not go."""
    statistics: StatisticsMode = "all"
    """What was read of tensors with more than 64 numbers: all statistics, or the norm alone where it is finite."""
    remarks: list[Note] = field(default_factory=list)
    """What could not be observed, and why; ``notes`` tells it."""
    dropped: int = 0
    """How many passes, those begun inside others too, there were before those that ``record(keep=...)`` keeps."""
    roots: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each pass, the places at which it starts."""
    hooked: list[list[int]] = field(default_factory=list)
    """For each pass, the hooks that were registered on its graph, by their place in ``hook_rows``."""
    reasons: list[ReasonRow] = field(default_factory=list, compare=False)
    """What a file says of formulas. With torch it follows from the other tables, so traces are compared without it."""
    explained: list[StepReasons] = field(default_factory=list, compare=False)
    """For each of ``rows`` its reasons, by their place in ``reasons``; empty where no file has any."""
    _lookup: Lookup | None = field(default=None, init=False, compare=False)
    _naming: Naming | None = field(default=None, init=False, compare=False)
    _hook_numbers: dict[HookRow, int] = field(default_factory=dict, init=False, compare=False)
    _noted: dict[int, set[int]] = field(default_factory=dict, init=False, compare=False)
    """Pass → what ``hooked`` lists for it, for the passes that are running."""

    def put_away(self) -> None:
        """Nothing more will be recorded: rows that are folded are written out once somebody reads them."""
        for name in ("rows", "values"):
            rows = self.__dict__.get(name)
            if isinstance(rows, CompactRows):
                self.__dict__[f"_folded_{name}"] = self.__dict__.pop(name)

    def __getattr__(self, name: str) -> Any:
        """Rows that were put away, when they are read for the first time."""
        folded = self.__dict__.pop(f"_folded_{name}", None)
        if folded is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self.__dict__[name] = rows = list(folded)
        return rows

    @property
    def notes(self) -> list[str]:
        """What could not be observed, and why, in sentences."""
        return [note.text for note in self.remarks]

    def value(self, index: Any) -> Values:
        """The value kept under ``index``; several for a tuple of indexes."""
        if index is None:
            return None
        if isinstance(index, int):
            return Value(*self.values[index])
        return tuple(None if i is None else Value(*self.values[i]) for i in index)

    def hook(self, index: int, place: HookPlace | None = None) -> Hook:
        """The hook kept under ``index``; ``place`` says where it stood when it fired."""
        row = self.hook_rows[index]
        on = self._holder(row)
        if place is None:
            place = self.place(index, self.lookup.last_passes.get(index))
        source = Source(row.name, row.file, row.line, row.text, row.mark)
        tensors = row.kind in ("tensor_hook", "post_accumulate_hook", "multi_grad_hook")
        unnamed = tensors and (row.node, row.output) not in self.naming.tensors
        variant = ".unnamed" if unnamed else ".global" if "global" in row.flags else ""
        return Hook(on, row.kind, source, say(f"dict.{row.kind}{variant}", on=on), *place, row.flags)

    def place(self, index: int, pass_id: int | None) -> HookPlace:
        """The place of a hook among those of its dict when a pass ran (or ever)."""
        return self.lookup.hooks(pass_id).places[index]

    def _holder(self, row: HookRow) -> str:
        """Whose a hook is."""
        if row.kind in STEP_HOOK_KINDS:
            return self.optimizer(row.module)
        return self.module(row.module) if row.kind in MODULE_HOOK_KINDS else self.name(row.node, row.output)

    def optimizer(self, index: int) -> str:
        """What an optimizer is called; -1 is all of them."""
        return say("name.optimizers") if index < 0 else self.optimizers[index].name

    def module(self, index: int) -> str:
        """What a module is called; -1 is all of them."""
        return say("name.modules") if index < 0 else self.modules[index].name

    def call(self, index: int) -> str:
        """What a module call is called: its module, and its number if it is not the first."""
        row = self.calls[index]
        name = self.module(row.module)
        return name if row.number < 2 else say("name.call", module=name, number=row.number)

    def name(self, node: int, output: int = -1) -> str:
        """What a tensor (``output`` 0 or more) or a node (-1) is called."""
        if node in self.outside:
            return say("name.outside", name=self._inside(node, output))
        return self._inside(node, output)

    def _inside(self, node: int, output: int) -> str:
        if node < 0:
            return ""
        naming, op = self.naming, self.ops[node]
        tensor = naming.tensors.get((node, max(output, 0)))
        if output >= 0 and tensor is not None:
            return tensor
        if tensor is not None:
            return say("name.node", op=op, tensor=tensor)
        if output >= 0 and op == "AccumulateGrad":
            return say("name.leaf", number=node)
        return say("name.number", op=op, number=node) if op in naming.repeated else op

    def outputs(self, node: int) -> list[int]:
        """The outputs of ``node`` to which an edge leads, or at which a pass begins."""
        return self.lookup.outputs.get(node, [])

    @property
    def naming(self) -> Naming:
        """The names of its tensors and nodes, also while it grows."""
        if self._naming is None or not self._naming.follows(self.ops, self.tensors):
            self._naming = Naming(self.ops, self.tensors)
        return self._naming

    @property
    def lookup(self) -> Lookup:
        """Its tables by pass, node and call; made anew once a table has grown, so a recording must not ask for it."""
        if self._lookup is None or self._lookup.size != table_sizes(self):
            self._lookup = Lookup(self)
        return self._lookup

    def forget(self) -> None:
        """A table has other rows now: look them up anew."""
        self._lookup, self._naming, self._hook_numbers, self._noted = None, None, {}, {}

    def hook_number(self, row: HookRow) -> int:
        """The place of ``row`` in ``hook_rows``, at whose end it is put if it is not there yet."""
        if len(self._hook_numbers) != len(self.hook_rows):
            self._hook_numbers = {known: place for place, known in enumerate(self.hook_rows)}
        place = self._hook_numbers.setdefault(row, len(self.hook_rows))
        if place == len(self.hook_rows):
            self.hook_rows.append(row)
        return place

    def note_hook(self, pass_id: int, index: int) -> None:
        """List a hook, by its place in ``hook_rows``, among those of a pass, once: a pass may have thousands."""
        noted = self._noted.get(pass_id)
        if noted is None:
            noted = self._noted[pass_id] = set(self.hooked[pass_id])
        if index not in noted:
            noted.add(index)
            self.hooked[pass_id].append(index)

    def forget_noted(self, pass_id: int) -> None:
        """A pass is over: the set of its hooks is not needed any more."""
        self._noted.pop(pass_id, None)

    def on(self, row: StepRow) -> str:
        """What a step is about."""
        if row.optimizer >= 0:
            return self.optimizer(row.optimizer)
        return self.call(row.call) if row.call >= 0 else self.name(row.node, row.output)

    def at(self, step: int) -> int:
        """``step`` as an index from 0; a negative one counts from the end.

        Raises:
            IndexError: there is no such step.
            TypeError: ``step`` is no whole number.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(say("error.step.type", kind=type(step).__name__))
        if not -len(self.rows) <= step < len(self.rows):
            key = "error.step" if self.rows else "error.step.empty"
            raise IndexError(say(key, step=step, last=len(self.rows) - 1))
        return step % len(self.rows)
