"""The tables of a trace with what is looked up in them: names, values, hooks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hookviz.support.messages import N_, _
from hookviz.trace.hook_facts import HOOK_FACTS, MODULE_HOOK_KINDS, NODE_HOOK_KINDS, ON_TENSOR_KINDS, STEP_HOOK_KINDS
from hookviz.trace.hooks import Hook, HookLabels, LabelledHook
from hookviz.trace.lookup import Lookup, table_sizes
from hookviz.trace.notes import STOP_NOTES
from hookviz.trace.rows import HookPlace, HookRow, NodeOutput, ReturnedPart, StepRow, TensorRow
from hookviz.trace.tables import TraceTables
from hookviz.trace.unfired_rows import UnfiredRow
from hookviz.trace.values import Value, Values


class TensorNames:
    """Finds names in the tables of a trace.

    It reads each row only once, since each of thousands of hook firings asks for names during a recording. Two threads
    may use it at the same time: reading a row twice changes nothing.
    """

    def __init__(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> None:
        self._ops, self._tensors = ops, tensors
        self._read_counts = 0, 0
        """How many ops and tensors were read."""
        self._first_nodes: dict[str, int] = {}
        """Op → the first node of that op."""
        self.repeated: set[str] = set()
        """The ops of more than one node."""
        self.tensors: dict[NodeOutput, str] = {}
        """(node, output) → the first name that was found for the tensor."""
        self._read()

    def update(self, ops: Sequence[str], tensors: Sequence[TensorRow]) -> bool:
        """Read the new rows of these tables; return False if they are other tables, or have lost rows."""
        counts = len(ops), len(tensors)
        if self._ops is not ops or self._tensors is not tensors:
            return False
        if counts[0] < self._read_counts[0] or counts[1] < self._read_counts[1]:
            return False
        if counts != self._read_counts:
            self._read()
        return True

    def _read(self) -> None:
        start, end = self._read_counts, (len(self._ops), len(self._tensors))
        for node in range(start[0], end[0]):
            op = self._ops[node]
            if op not in self.repeated and self._first_nodes.setdefault(op, node) != node:
                self.repeated.add(op)
        for row in self._tensors[start[1] : end[1]]:
            if row.name:
                self.tensors.setdefault((row.node, row.output), row.name)
        self._read_counts = end


@dataclass(repr=False)
class NamedTables(TraceTables):
    """The tables of a trace, and the lookup of names, values and hooks in them, which is kept while no table grows."""

    _lookup: Lookup | None = field(default=None, init=False, compare=False)
    _naming: TensorNames | None = field(default=None, init=False, compare=False)
    _hook_indexes: dict[HookRow, int] = field(default_factory=dict, init=False, compare=False)
    _labels: tuple[int, HookLabels] | None = field(default=None, init=False, compare=False)
    """The number of hooks, and what tells them apart."""
    _listed_hooks: dict[int, set[int]] = field(default_factory=dict, init=False, compare=False)
    """Pass → the same hooks as in ``hooked``, as a set, for the passes that are running."""

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

    @property
    def has_raised(self) -> bool:
        """Whether an exception left the block, and so ended the recording: others were caught by the program."""
        return any(note.fact == "raised" for note in self.remarks)

    @property
    def ended_early(self) -> bool:
        """Whether an exception or ``record(until=...)`` ended the recording: what came later is not known."""
        return self.has_raised or any(note.fact in STOP_NOTES for note in self.remarks)

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
        is_on_tensor = row.kind in ON_TENSOR_KINDS
        is_unnamed = is_on_tensor and (row.node, row.output) not in self.naming.tensors
        kept_in = _name_dict(row.kind, on, is_unnamed=is_unnamed, is_global="global" in row.flags)
        return Hook(on, row.kind, row.source, kept_in, *place, row.flags, self.distinguish_hook(row, on))

    def distinguish_hook(self, row: HookRow | UnfiredRow, on: str) -> str:
        """Return what tells the hook of a row, which is on ``on``, from others of its name; empty if it needs none."""
        count = len(self.hook_rows) + len(self.unfired_rows)
        if self._labels is None or self._labels[0] != count:
            rows: list[HookRow | UnfiredRow] = [*self.hook_rows, *self.unfired_rows]
            self._labels = count, HookLabels(LabelledHook(one.source, one.held, one.owner_key) for one in rows)
        return self._labels[1].distinguish(LabelledHook(row.source, row.held, row.owner_key), on)

    def hook_of_row(self, row: HookRow | UnfiredRow, on: str) -> Hook:
        """Return the hook of a row, which is on ``on``, whatever its place in its dict is."""
        return Hook(on, row.kind, row.source, "", 0, 1, row.flags, self.distinguish_hook(row, on))

    def place(self, index: int, pass_id: int | None) -> HookPlace:
        """Return the place of a hook in its dict when a pass ran; among the hooks of all passes if that is None."""
        return self.lookup.hooks(pass_id).places[index]

    def _get_owner_name(self, row: HookRow) -> str:
        """Return the name of the tensor, node, module or optimizer that has a hook."""
        if row.kind in STEP_HOOK_KINDS:
            return self.optimizer(row.optimizer)
        if row.kind in MODULE_HOOK_KINDS:
            return self.module(row.module)
        return self.name_tensor(row.node, row.output) if row.kind in ON_TENSOR_KINDS else self.name(row.node)

    def optimizer(self, index: int | None) -> str:
        """Return the name of an optimizer; None is all optimizers."""
        return _("all optimizers") if index is None else self.optimizers[index].name

    def module(self, index: int | None) -> str:
        """Return the name of a module; None is all modules."""
        return _("all modules") if index is None else self.modules[index].name

    def call(self, index: int) -> str:
        """Return the name of a module call: that of its module, with a number if it is not the first call.

        Of a module that a model holds at several paths, it is the path by which it was called.
        """
        row = self.calls[index]
        name, number = self.call_path(index), row.nth or row.number
        return name if number < 2 else _("{module} (call {number})").format(module=name, number=number)

    def call_path(self, index: int) -> str:
        """Return the path in its model by which a module was called: its name, if the model has it at one place."""
        row = self.calls[index]
        return row.path or self.module(row.module)

    def name(self, node: int | None, output: int | None = None) -> str:
        """Return the name of the tensor at an ``output`` of a node, or of the node itself; "" without a node."""
        if node in self.outside:
            return _("{name} (not recorded)").format(name=self._get_graph_name(node, output))
        return self._get_graph_name(node, output)

    def name_tensor(self, node: int | None, output: int | None) -> str:
        """Return the name of a tensor; without a name of its own, the module call that returned it first."""
        part = None if node is None or (node, output) in self.naming.tensors else self.returned.get((node, output or 0))
        return self.name(node, output) if part is None else self.name_returned(part)

    def name_returned(self, part: ReturnedPart) -> str:
        """Name a tensor by the module call that returned it, such as "the output of net.0"."""
        on = self.call(part.call)
        if part.label == "output":
            return _("the output of {on}").format(on=on)
        return _("{part} of {on}").format(part=part.label, on=on)

    def _get_graph_name(self, node: int | None, output: int | None) -> str:
        if node is None:
            return ""
        naming, op = self.naming, self.ops[node]
        tensor = naming.tensors.get((node, output or 0))
        if output is not None and tensor is not None:
            return tensor
        if tensor is not None:
            return _("{op} ({tensor})").format(op=op, tensor=tensor)
        if output is not None and op == "AccumulateGrad":
            return _("leaf #{number}").format(number=node)
        name = f"{op} #{node}" if op in naming.repeated else op
        if output is None or len(self.outputs(node)) < 2:
            return name
        return _("output {number} of {op}").format(number=output, op=name)

    def plain_name(self, node: int, output: int) -> str:
        """Return the name of a tensor as it is in every language: without a name of its own, that of its node."""
        op = self.ops[node]
        numbered = f"{op} #{node}" if op in self.naming.repeated or op == "AccumulateGrad" else op
        return self.naming.tensors.get((node, output), numbered)

    def plain_call(self, index: int) -> str:
        """Return the name of a module call as it is in every language: that of its module."""
        return self.module(self.calls[index].module)

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
        self._lookup, self._naming, self._labels, self._hook_indexes, self._listed_hooks = None, None, None, {}, {}

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
        if row.call is not None:
            return self.call(row.call)
        names_tensor = row.kind in (*ON_TENSOR_KINDS, "retain_grad")
        return self.name_tensor(row.node, row.output) if names_tensor else self.name(row.node, row.output)

    def at(self, step: int) -> int:
        """Convert ``step`` to an index from 0; a negative number counts from the end.

        Raises:
            IndexError: there is no such step.
            TypeError: ``step`` is not an integer.
        """
        if isinstance(step, bool) or not isinstance(step, int):
            raise TypeError(_("A step is a whole number counted from 0, not {kind}.").format(kind=type(step).__name__))
        if not -len(self.rows) <= step < len(self.rows):
            text = (
                N_("There is no step {step}: this trace has the steps 0 to {last}.")
                if self.rows
                else N_(
                    "There is no step {step}: this trace holds no steps, because no backward pass ran inside record()."
                )
            )
            raise IndexError(_(text).format(step=step, last=len(self.rows) - 1))
        return step % len(self.rows)


_GLOBAL_OPTIMIZER_DICTS = {
    "step_pre_hook": "torch.optim.optimizer._global_optimizer_pre_hooks",
    "step_post_hook": "torch.optim.optimizer._global_optimizer_post_hooks",
}


def _name_dict(kind: str, on: str, *, is_unnamed: bool, is_global: bool) -> str:
    """Name the dict that holds a hook, as code if there is code that reaches it."""
    kept = HOOK_FACTS[kind].kept
    if kind in NODE_HOOK_KINDS:
        return _(kept).format(on=on)
    if is_global:
        return _GLOBAL_OPTIMIZER_DICTS.get(kind) or f"torch.nn.modules.module._global{kept}"
    if is_unnamed:
        return _("{dict} of a tensor without a name ({on})").format(dict=kept, on=on)
    return f"{on}.{kept}"
