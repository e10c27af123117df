"""Finds the ops that cut the path of a gradient, and those of them whose results led to the root of a pass.

An op cuts if it takes a tensor that requires grad and returns one that does not. Its result is marked, and so is all
that is computed from it. At the root of a pass the marks say which cuts were on the way.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import CodeType
from typing import Any, NamedTuple

import torch

from hookviz.analysis.findings.parameters.cutting_code import FOLLOWED_METHODS
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import DisableTorchFunction, push_function_mode
from hookviz.autograd.variable_names import caller_frame
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.flow_marks import FlowMarks
from hookviz.recorder.followers.leaf_search import NO_LEAVES, LeafSearch, Leaves
from hookviz.recorder.followers.ops import (
    DESCRIBING,
    DETACHING_OPS,
    EACH_FOR_ITSELF,
    FREEZING_OPS,
    GRAPH_MAY_FOLLOW,
    NUMBER_OPS,
    OpCode,
    OpMode,
    find_mode,
    has_history,
    insert_mode,
    is_in_place,
    iter_values,
    list_inputs,
    name_op,
    read_code,
    remove_mode,
)
from hookviz.recorder.modules.tensor_flow import TensorFlow
from hookviz.recorder.session import Session
from hookviz.support.user_objects import is_of
from hookviz.trace.training_rows import CutKind, CutRow

MAX_CUTS = 2_000
"""A recording follows up to this many cuts; a note says if there were more."""
MAX_OTHER_LEAVES = 100
"""Of leaves that are not parameters, a cut remembers the last ones that it has cut off."""
_CutKey = tuple[int, int, str, CutKind, frozenset[int]]
"""Code, instruction, op, kind and parameters: what a loop repeats is one cut."""


class Cut(NamedTuple):
    """An op at one place of the code that cuts off the same leaves each time."""

    code: CodeType
    """Held, so that no other gets its ``id``."""
    op: str
    kind: CutKind
    place: OpCode
    step_count: int
    """The number of steps that there were when it ran first, with those that were dropped since."""
    parameters: frozenset[int]
    others: dict[int, None]
    """The numbers of other leaves, the last ones at the end."""

    def is_of(self, leaf: int | None) -> bool:
        """Whether it has cut off the leaf with this number."""
        return leaf in self.parameters or leaf in self.others

    def add_others(self, numbers: Iterable[int]) -> None:
        """Note leaves that are not parameters."""
        for number in numbers:
            self.others.pop(number, None)
            self.others[number] = None
        while len(self.others) > MAX_OTHER_LEAVES:
            del self.others[next(iter(self.others))]


class Op(NamedTuple):
    """An op that runs."""

    name: str
    sources: list[torch.Tensor]
    """The inputs that require grad."""
    target: Any
    """The first argument, if the op writes into it; else None."""
    cuts: int
    """The cuts through which its inputs have come, as the bits of a number."""
    leaves: Leaves | None
    """The leaves below the inputs, if they have to be found before it runs."""


class CutCalls:
    """Remembers for each cut, by its index, the call whose output it cut last."""

    def __init__(self, flow: TensorFlow) -> None:
        self._flow = flow
        self._calls: dict[int, int | None] = {}

    def note(self, index: int, sources: Sequence[torch.Tensor]) -> None:
        """Note what a cut has just cut off: the output of one call, or something else."""
        calls = {self._flow.find_graph_call(source) for source in sources}
        self._calls[index] = calls.pop() if len(calls) == 1 else None

    def find(self, cuts: int) -> dict[int, int]:
        """Return call → the last of some cuts, given as the bits of a number, that cut off its output."""
        found = ((call, index) for index, call in sorted(self._calls.items()) if cuts >> index & 1)
        return {call: index for call, index in found if call is not None}

    def clear(self) -> None:
        """Forget everything: the numbers of calls are about to change."""
        self._calls.clear()


class CutTracker(Follower):
    """Follows the ops of one thread. None of its methods may raise into the user's program."""

    def __init__(self, session: Session, flow: TensorFlow) -> None:
        self.session, self.trace = session, session.trace
        self.leaves, self.marks = LeafSearch(), FlowMarks()
        self._mode = OpMode(self)
        self._paused_at: list[int | None] = []
        """For each compiled region that runs, the position of the mode on the stack before it."""
        self._cuts: list[Cut] = []
        self._indexes: dict[_CutKey, int] = {}
        self._cut_calls = CutCalls(flow)
        self._guilty = 0
        """The cuts whose results led to the root of a pass."""
        self._used: set[int] = set()
        """The numbers of the leaves that belonged to the graph of a pass."""
        self._dropped_steps = 0
        self._has_more = False
        self._rows: dict[CutRow, int] = {}
        self.lines: set[tuple[str, int]] = set()
        """File and line of the code that ran one of ``FOLLOWED_METHODS``."""

    # -- the mode

    def recording_begins(self) -> None:
        """Follow the ops of this thread from now on."""
        push_function_mode(self._mode)

    def recording_ends(self) -> None:
        """Follow nothing any more. Calling it twice is safe.

        Another thread cannot remove the mode: there it stays, and only passes on.
        """
        self._mode.observer = None
        if self.session.is_own_thread():
            remove_mode(self._mode)

    def region_begins(self) -> None:
        """Take the mode away before a compiled region: the compiler would look into it, and compile anew for it."""
        self._paused_at.append(remove_mode(self._mode) if self.session.is_own_thread() else None)

    def region_ended(self) -> None:
        """Put the mode back after a compiled region."""
        position = self._paused_at.pop() if self._paused_at else None
        if position is not None:
            insert_mode(self._mode, position)

    # -- an op runs

    def op_begins(self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]) -> Op | None:
        """Look at the inputs of an op; None if nothing of them is followed."""
        try:
            if function in DESCRIBING:
                return None
            with DisableTorchFunction():
                return self._read_inputs(function, args, options)
        except Exception as error:
            self._fail(error)
            return None

    def op_returned(self, op: Op, result: Any) -> None:
        """Mark what an op returned."""
        try:
            with DisableTorchFunction():
                self._mark_result(op, result)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Stop following, and report an error of ours."""
        self._mode.observer = None
        with suppress(Exception):
            self.session.report_internal_error(error)

    def _read_inputs(
        self, function: Callable[..., Any], args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> Op | None:
        name = name_op(function)
        if name in FOLLOWED_METHODS:
            frame = caller_frame(2)
            self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        in_place = is_in_place(function, name)
        sources, cuts = [], 0
        for value in list_inputs(name, args, options, in_place=in_place):
            if not is_tensor(value):
                cuts |= self.marks.cuts_of(value)
                continue
            cuts |= self.marks.cuts_of_tensor(value)
            if has_history(value):
                sources.append(value)
        target = args[0] if args and in_place else None
        if sources and name in FREEZING_OPS and not _switches_off(args, options):
            sources = []
        if not (sources or cuts or target is not None):
            return None
        leaves = self.leaves.find(sources) if name in DETACHING_OPS and sources else None
        return Op(name, sources, target, cuts, leaves)

    def _mark_result(self, op: Op, result: Any) -> None:
        outputs = list(iter_values(result))
        tensors = [output for output in outputs if is_tensor(output)]
        if not tensors and op.target is not None:
            tensors = [target for target in iter_values(op.target) if is_tensor(target)]
        if not tensors and op.name in NUMBER_OPS:
            self._mark_numbers(op, outputs)
        any_grad = any(_goes_on(op, tensor) for tensor in tensors)
        for tensor in tensors:
            if tensor is op.target and _is_update(op.name, tensor):
                continue
            cut = self._cut_at(op, tensor, any_grad) if op.sources else 0
            self.marks.put_on_tensor(tensor, op.cuts | cut)
            base = tensor._base if tensor is op.target else None
            if base is not None and op.cuts | cut:
                self.marks.put_on_tensor(base, self.marks.cuts_of_tensor(base) | op.cuts | cut)

    def _mark_numbers(self, op: Op, numbers: Iterable[Any]) -> None:
        cuts = op.cuts | (self._add_cut(op, op.sources, "numbers") if op.sources else 0)
        for number in numbers if cuts else ():
            self.marks.put(number, cuts)

    def _cut_at(self, op: Op, output: torch.Tensor, any_grad: bool) -> int:
        """Return the cut between the inputs of an op and one of its outputs; 0 for none."""
        if not _goes_on(op, output):
            may_have_graph = output.is_floating_point() or output.is_complex()
            if any_grad and (may_have_graph or op.name in EACH_FOR_ITSELF):
                return 0  # this output is not from the source
            return self._add_cut(op, op.sources, "frozen" if op.name in FREEZING_OPS else find_mode())
        if op.target is output and not torch.is_grad_enabled():
            others = [source for source in op.sources if source is not output]
            return self._add_cut(op, others, find_mode()) if others else 0
        return 0

    def _add_cut(self, op: Op, sources: Sequence[torch.Tensor], kind: CutKind) -> int:
        """Return the bit of a cut, which may be known already."""
        leaves = self.leaves.find(sources) if op.leaves is None else op.leaves
        if leaves == NO_LEAVES:
            return 0
        frame = caller_frame(2)
        key = (id(frame.f_code), frame.f_lasti, op.name, kind, leaves.parameters)
        index = self._indexes.get(key)
        if index is None:
            if len(self._cuts) >= MAX_CUTS:
                self._has_more = True
                return 0
            index = self._indexes[key] = len(self._cuts)
            step_count = self._dropped_steps + len(self.trace.rows)
            self._cuts.append(Cut(frame.f_code, op.name, kind, read_code(frame), step_count, leaves.parameters, {}))
            self.marks.function_cuts |= (1 << index) if kind in GRAPH_MAY_FOLLOW else 0
        self._cuts[index].add_others(leaves.others)
        self._cut_calls.note(index, sources)
        return 1 << index

    # -- calls

    def call_takes(self, call: int, items: Sequence[Any]) -> None:
        """Note which cuts are between the output of an earlier call and the tensors without a graph of this one."""
        row, cuts = self.trace.calls[call], 0
        for item in items if not row.fed_by else ():
            cuts |= self.marks.cuts_of_tensor(item) if is_tensor(item) and not item.requires_grad else 0
        found = self._cut_calls.find(cuts)
        if found:
            named = tuple((source, self._row_of(self._cuts[index])) for source, index in found.items())
            self.trace.calls[call] = row._replace(cut_from=tuple(sorted({*row.cut_from, *found})), cuts=named)

    # -- passes

    def pass_begins(self, start: PassStart) -> None:
        """Note which cuts led to the roots of a pass, and which leaves belong to its graph."""
        leaves = [leaf for reference in start.snapshot.leaves.values() if (leaf := reference()) is not None]
        for tensor in (*start.roots, *leaves):
            if is_tensor(tensor):
                self._guilty |= self.marks.cuts_of_tensor(tensor)
        numbers = (self.leaves.find_number(leaf) for leaf in leaves)
        self._used.update(number for number in numbers if number is not None)
        self.leaves.forget_nodes()

    def dropped(self, count: int) -> None:
        """Note that the steps of the first ``count`` passes are about to be dropped."""
        self._dropped_steps += sum(row.pass_id < count for row in self.trace.rows)
        self._cut_calls.clear()

    def stop(self) -> None:
        """Follow nothing any more, because the recording has stopped."""
        self._mode.observer = None

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self.marks.forget(tensor)
        self.leaves.forget(tensor)

    # -- the end

    def rows_of(self, leaf: "weakref.ref[torch.Tensor]") -> tuple[int, ...]:
        """Return the rows of the cuts that cut a leaf off from the roots of the passes; new ones are written."""
        number = self.leaves.find_number_of(leaf)
        cuts = (cut for index, cut in enumerate(self._cuts) if self._guilty >> index & 1 and cut.is_of(number))
        return tuple(dict.fromkeys(self._row_of(cut) for cut in cuts))

    def is_used(self, leaf: torch.Tensor) -> bool:
        """Return whether a leaf that a search has found belonged to the graph of a pass."""
        return self.leaves.find_number(leaf) in self._used

    def _row_of(self, cut: Cut) -> int:
        step = cut.step_count - self._dropped_steps - 1
        row = CutRow(cut.op, cut.kind, *cut.place, step if 0 <= step < len(self.trace.rows) else None)
        index = self._rows.setdefault(row, len(self.trace.cut_rows))
        if index == len(self.trace.cut_rows):
            self.trace.cut_rows.append(row)
        return index

    def close(self) -> None:
        """Note what following the ops has changed, and what was not followed; forget everything."""
        self.session.notes.say("cuts")
        if self._has_more or self.leaves.is_limited:
            self.session.notes.say("cuts.many")
        self.marks.clear()
        self.leaves.forget_nodes()


def _is_update(name: str, target: torch.Tensor) -> bool:
    """Whether an op writes a parameter without recording a graph, as an optimizer does, or a merge of weights.

    No path goes through it: what uses the parameter afterwards uses it as it is.
    """
    return is_of(target, torch.nn.Parameter) and (name == "data" or not torch.is_grad_enabled())


def _goes_on(op: Op, output: torch.Tensor) -> bool:
    """Whether a gradient can go back through an output of an op.

    A leaf that it made from other tensors is a new one, as that of ``torch.tensor(values, requires_grad=True)``.
    """
    is_new = output.is_leaf and output is not op.target and all(output is not source for source in op.sources)
    return has_history(output) and not is_new


def _switches_off(args: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Whether ``requires_grad_`` was called with False, or ``requires_grad`` set to False."""
    values = (*args[1:], *options.values())
    return bool(values) and not values[0]
