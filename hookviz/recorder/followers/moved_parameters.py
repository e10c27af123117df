"""Notices parameters that an optimizer changes where their gradient is 0, because a hook made it 0, or frozen ones."""

import weakref
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch.optim import Optimizer

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_statistics import can_be_read
from hookviz.autograd.torch_internals import read_grad
from hookviz.recorder.follower import Follower, PassStart
from hookviz.recorder.followers.training_tracker import TrainingTracker, read_rate
from hookviz.trace import MovedRow, StepRow, TraceData
from hookviz.trace.hook_facts import TENSOR_HOOK_KINDS
from hookviz.trace.value_rows import get_stored_rows
from hookviz.trace.values import Value

MAX_LOOKS = 20
"""Of each parameter, this many steps are looked at."""
MAX_PARTS = 64
"""Of each parameter, this many rows are looked at."""
MAX_NUMBERS = 2**24
"""Parameters with more numbers than this are not looked at."""
MAX_SINGLE = 2**12
"""Up to this many numbers, parameters are looked at number by number."""
_AVERAGES = ("exp_avg", "momentum_buffer")
"""The names by which torch's optimizers keep averages of earlier gradients."""

Axis = Literal["rows", "columns", "numbers"]


class _Zeroing(NamedTuple):
    """What a hook did to the gradient of a leaf in the last pass."""

    hook: int
    zeros: int
    """How many numbers of the gradient were 0 before the hook."""


class _Look(NamedTuple):
    """A parameter before a step, where its gradient is 0."""

    parameter: "weakref.ref[torch.Tensor]"
    hook: int | None
    zeros: int
    axis: Axis
    parts: list[int]
    """The rows, columns or numbers whose gradient is 0."""
    numbers: torch.Tensor
    decay: float
    averages: bool


class MovedParameters(Follower):
    """Fills ``TraceData.moved``.

    A parameter counts as moved if it is another one after the step and still when the next pass begins: a program may
    put it back in between.
    """

    def __init__(self, trace: TraceData, training: TrainingTracker) -> None:
        self.trace, self._training = trace, training
        self._zeroed: IdentityMap[_Zeroing] = IdentityMap()
        """Leaf → the hook that set numbers of its gradient to 0 in the last pass."""
        self._looks: list[_Look] = []
        """Those of the step that is running."""
        self._moved: list[tuple[int, _Look]] = []
        """(step, look) of what has moved in the last steps."""
        self._passes = 0
        """The number of passes when the step began that is running."""
        self._counts: IdentityMap[int] = IdentityMap()
        """Parameter → how often it was looked at."""

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Note which hooks set numbers of a gradient to 0; nothing is read unless a leaf of the pass has a hook."""
        hooks = (self.trace.hook_rows[index] for index in self.trace.hooked[snapshot.pass_id])
        if not any(hook.kind in TENSOR_HOOK_KINDS and hook.node in snapshot.leaves for hook in hooks):
            return
        for row in get_stored_rows(self.trace.rows, snapshot.first_row):
            if row.__class__ is StepRow and row.kind in TENSOR_HOOK_KINDS and row.node in snapshot.leaves:
                zeros, leaf = self._count_zeros(row), snapshot.leaves[row.node]()
                if zeros is not None and row.hook is not None and leaf is not None:
                    self._zeroed.put(leaf, _Zeroing(row.hook, zeros))

    def _count_zeros(self, row: StepRow) -> int | None:
        """Return how many zeros a gradient had before a hook that made more of them; None for another hook."""
        before, after = row.before, row.after
        if row.effect not in ("edited", "replaced") or not isinstance(before, int) or not isinstance(after, int):
            return None
        old, new = (Value(*self.trace.values[index]) for index in (before, after))
        if old.zero is None or new.zero is None or old.shape != new.shape:
            return None
        return old.zero if new.zero > old.zero else None

    def step_begins(self, optimizer: Optimizer) -> None:
        """Read the parameters whose gradient is 0 because of a hook, and those that are frozen and have one."""
        self._judge()
        self._looks, self._passes = [], len(self.trace.roots)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                zeroing = self._zeroed.get(parameter)
                if zeroing is not None or not parameter.requires_grad:
                    self._look(optimizer, group, parameter, zeroing)

    def _look(self, optimizer: Optimizer, group: Any, parameter: torch.Tensor, zeroing: _Zeroing | None) -> None:
        grad = read_grad(parameter)
        count = self._counts.get(parameter) or 0
        if count >= MAX_LOOKS or grad is None or not _is_readable(parameter, grad):
            return
        self._counts.put(parameter, count + 1)
        first_rows: tuple[Axis, list[int]] = "rows", list(range(min(MAX_PARTS, len(_split(parameter, "rows")))))
        found = first_rows if zeroing is None else _find_zero(grad, zeroing.zeros)
        if found is None:
            return
        axis, parts = found
        numbers = _split(parameter, axis)[parts]
        decay = (read_rate(group.get("weight_decay")) or 0.0) if bool(numbers.any()) else 0.0
        state = vars(optimizer).get("state", {}).get(parameter, {})
        averages = any(_is_set(state.get(name), parameter, axis, parts) for name in _AVERAGES)
        hook, zeros = (None, 0) if zeroing is None else (zeroing.hook, zeroing.zeros)
        look = _Look(weakref.ref(parameter), hook, zeros, axis, parts, numbers, decay, averages)
        self._looks.append(look)

    def step_ended(self, step: int) -> None:
        """Keep what has moved in the step that is row ``step`` of the trace, and its hooks did not put back.

        If the step ran a pass itself, through a closure, it used other gradients than those at its begin.
        """
        if len(self.trace.roots) == self._passes:
            self._moved += [(step, look) for look in self._looks if _find_moved(look)]
        self._looks = []

    def pass_begins(self, start: PassStart) -> None:
        """Judge what the last steps moved: a program may have put it back by now. Forget what hooks did before."""
        self._judge()
        for reference in start.snapshot.leaves.values() if self._zeroed else ():
            self._zeroed.forget(reference())

    def close(self) -> None:
        """Judge what the last steps moved; of a parameter that is gone nothing is known any more."""
        self._judge()

    def dropped(self, count: int) -> None:
        """Forget what is open: the indexes of hooks and steps are about to change."""
        self._zeroed.clear()
        self._looks, self._moved = [], []

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self._zeroed.forget(tensor)
        self._counts.forget(tensor)
        self._looks = [look for look in self._looks if look.parameter() is not tensor]
        self._moved = [(step, look) for step, look in self._moved if look.parameter() is not tensor]

    def _judge(self) -> None:
        for step, look in self._moved:
            moved, parameter = _find_moved(look), look.parameter()
            if moved and parameter is not None:
                number = self._training.number(parameter)
                parts = len(_split(parameter, look.axis))
                causes = look.decay, look.averages, look.zeros > 0
                self.trace.moved.append(MovedRow(step, number, look.hook, look.axis, tuple(moved), parts, *causes))
        self._moved = []


def _is_readable(*tensors: torch.Tensor) -> bool:
    """Whether tensors can be read at once, and are not too large."""
    return all(can_be_read(tensor) and 0 < tensor.numel() <= MAX_NUMBERS for tensor in tensors)


def _split(tensor: torch.Tensor, axis: Axis) -> torch.Tensor:
    """Return a view or copy of a tensor whose first dimension counts its rows, columns or numbers."""
    tensor = tensor.detach()
    if axis == "numbers" or tensor.dim() < 2:
        return tensor.reshape(-1, 1)
    return tensor.flatten(1) if axis == "rows" else tensor.flatten(1).t()


def _find_zero(grad: torch.Tensor, zeros: int) -> tuple[Axis, list[int]] | None:
    """Return the rows of a gradient that are 0; else the columns, or in a small one the numbers.

    ``zeros`` numbers were 0 without the hook: these rows have to hold more, and the rest of the gradient no more.
    """
    count = grad.numel() - int(grad.count_nonzero())
    axes: Sequence[Axis] = ("rows", "columns") if grad.dim() > 1 else ("rows",)
    for axis in (*axes, *(("numbers",) if grad.numel() <= MAX_SINGLE else ())):
        split = _split(grad, axis)
        parts = (~split.any(1)).nonzero().flatten().tolist()
        inside = len(parts) * split.shape[1]
        if inside > zeros >= count - inside:
            return axis, parts[:MAX_PARTS]
    return None


def _is_set(average: Any, parameter: torch.Tensor, axis: Axis, parts: list[int]) -> bool:
    """Whether an average that an optimizer keeps of the gradients of a parameter is not 0 in some parts of it."""
    is_known = type(average) is torch.Tensor and average.shape == parameter.shape and _is_readable(average)
    return is_known and bool(_split(average, axis)[parts].any())


def _find_moved(look: _Look) -> list[int]:
    """Return the parts that have moved.

    Some numbers of the gradient may have been 0 without the hook: more than these have to have moved.
    """
    parameter = look.parameter()
    if parameter is None or not _is_readable(parameter):
        return []
    is_moved = _split(parameter, look.axis)[look.parts] != look.numbers
    if int(is_moved.sum()) <= look.zeros:
        return []
    return [part for part, is_wanted in zip(look.parts, is_moved.any(1).tolist(), strict=True) if is_wanted]
