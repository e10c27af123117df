"""Writes down what optimizers are given: their groups of parameters, and at each step the gradients and rates.

How far a step moves the parameters is measured, and which optimizers take no step is noted.
"""

import weakref
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import isfinite
from operator import is_
from typing import Any, NamedTuple

import torch
from torch.nn.parameter import is_lazy
from torch.optim import Optimizer

from hookviz.autograd import module_tree, tensor_statistics, variable_names
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.module_tree import own_buffers, own_parameters
from hookviz.autograd.tensor_statistics import can_be_read
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import read_grad
from hookviz.autograd.variable_names import find_code_place
from hookviz.recorder.fingerprint import Mark, mark_of
from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.gradient_edits import GradientEdits
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.support.user_objects import read_attribute
from hookviz.trace import GroupRow, ModuleRow, TraceData
from hookviz.trace.training_rows import ParameterRow, UpdateRow
from hookviz.trace.traversal import list_outer_paths

MAX_MOVES = 10
"""Of one step, this many parameters are measured, the first ones."""
MAX_NUMBERS = 2**20
"""With more numbers than this in all, the parameters beyond are not measured: each is copied while the step runs."""
MAX_NORM = MAX_NUMBERS // MAX_MOVES
"""Up to so many numbers, the norm of a parameter without a gradient is read around each step."""

_MISSPELT = ("require_grad", "require_grads", "require_gradient", "requires_grads", "requires_gradient")
"""What is written for ``requires_grad`` by mistake: Python makes an attribute of it, and torch never reads that."""


class _Copy(NamedTuple):
    """A parameter before a step."""

    position: int
    """Its position among the parameters of the optimizer."""
    group: int
    parameter: torch.Tensor
    numbers: torch.Tensor


class Move(NamedTuple):
    """How far a parameter was moved."""

    position: int
    group: int
    norm: float | None
    """None if it is not finite."""


_Numbers = tuple[Mark, float | None]
"""Where the numbers of a parameter are, their version, and their norm if it can be read at once: a write through
``.data`` leaves the version as it is."""


def describe_optimizer(optimizer: Optimizer) -> ModuleRow:
    """Make the row of an optimizer, with the name that a variable of the caller gives it."""
    cls = type(optimizer)
    name = variable_names.expression_for(optimizer, variable_names.caller_frame()) or cls.__name__
    return ModuleRow(name, cls.__name__, is_own=not cls.__module__.startswith("torch."))


def list_parameters(optimizer: Optimizer) -> list[torch.Tensor]:
    """List the parameters that an optimizer holds, in the order of its groups."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def copy_parameters(optimizer: Optimizer) -> list[_Copy]:
    """Copy the first parameters of an optimizer, as they are before its step."""
    copies, room = list[_Copy](), MAX_NUMBERS
    held = ((number, one) for number, group in enumerate(optimizer.param_groups) for one in group["params"])
    for position, (group, parameter) in enumerate(held):
        if len(copies) == MAX_MOVES or not can_be_read(parameter) or parameter.numel() > room:
            break
        if not parameter.is_floating_point():
            break
        room -= parameter.numel()
        copies.append(_Copy(position, group, parameter, parameter.detach().clone()))
    return copies


def measure_moves(copies: Sequence[_Copy]) -> list[Move]:
    """Return how far each parameter is from its copy."""
    pairs = [(copy, copy.parameter.detach()) for copy in copies]
    norms = [(copy, float(torch.linalg.vector_norm(now - copy.numbers))) for copy, now in pairs]
    return [Move(copy.position, copy.group, norm if isfinite(norm) else None) for copy, norm in norms]


class Given(NamedTuple):
    """What an optimizer has for its step, before the step: an optimizer may itself clear gradients or set its rates."""

    rates: tuple[float | None, ...]
    without: frozenset[int]
    """The positions of the parameters without a gradient."""
    is_zero: bool
    """Whether every gradient is exactly 0."""
    regraded: tuple[tuple[int, int], ...]
    """(position, value) of each gradient that was changed since the last pass."""
    untouched: Mapping[int, _Numbers]
    """Position → what tells whether the numbers change, of the first parameters without a gradient."""


_NORMS = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm)


class TrainingTracker(Follower):
    """Follows the parameters of models and optimizers from step to step, without holding them."""

    def __init__(
        self, trace: TraceData, modules: ModuleRegistry, names: Mapping[str, torch.Tensor], edits: GradientEdits
    ) -> None:
        self.trace, self.modules, self._edits = trace, modules, edits
        self._own_names = {id(tensor): name for name, tensor in names.items()}
        """``id`` of each tensor that the user named; ``record`` holds these tensors."""
        self._numbers: IdentityMap[int] = IdentityMap()
        self._held_numbers: dict[int, tuple[list[weakref.ref[torch.Tensor]], list[int]]] = {}
        """Optimizer → the parameters that it held at its last step, and their indexes."""
        self._seen: list[Any] = []
        """What the last scan of the modules has found; a scan that finds the same has nothing to do."""
        self._norms: list[weakref.ref[Any]] = []
        self._left: dict[int, _Numbers] = {}
        """Parameter → what a step left of it that it did not move: one without a gradient, or in no optimizer."""
        self._was_frozen: set[int] = set()
        """The parameters that were seen not to require grad."""

    def read_given(self, optimizer: Optimizer) -> Given:
        """Read what an optimizer has for its next step."""
        parameters = list_parameters(optimizer)
        gradients = [read_grad(parameter) for parameter in parameters]
        known = [grad for grad in gradients if grad is not None]
        without = [index for index, grad in enumerate(gradients) if grad is None]
        return Given(
            rates=tuple([read_rate(group.get("lr")) for group in optimizer.param_groups]),
            without=frozenset(without),
            is_zero=bool(known) and all(map(_is_zero, known)),
            regraded=tuple(self._edits.find(parameters)),
            untouched={index: _identify_numbers(parameters[index]) for index in without[:MAX_MOVES]},
        )

    def add_later_edits(self, optimizer: Optimizer, given: Given) -> Given:
        """Add the gradients that were changed since the pass of a step, as its closure clips them, from after the step.

        One that is 0 by then is left out: the optimizer may have cleared it, once it had used it.
        """
        parameters = list_parameters(optimizer)
        found = ((index, value, read_grad(parameters[index])) for index, value in self._edits.find(parameters))
        edits = tuple([(index, value) for index, value, grad in found if grad is not None and not _is_zero(grad)])
        return given._replace(regraded=edits)

    def add_update(
        self, optimizer: Optimizer, step: int, given: Given, moves: Sequence[Move], taken_by: int | None
    ) -> None:
        """Add a row for the step that is row ``step`` of the trace; ``taken_by`` is the optimizer around it."""
        number = self.trace.rows[step].optimizer
        assert number is not None
        known = self._scan_modules()
        parameters = list_parameters(optimizer)
        numbers = self._number_held(parameters, number)
        still = {numbers[index]: (now, parameters[index]) for index, now in given.untouched.items()}
        still |= {each: (_identify_numbers(free), free) for each, free in self._list_free(known)}
        row = UpdateRow(
            step,
            given.rates,
            tuple([each for index, each in enumerate(numbers) if index in given.without]),
            given.is_zero,
            tuple(self._list_eval_norms(number)),
            tuple([(numbers[index], value) for index, value in given.regraded]),
            find_code_place(),
            vars(optimizer).get("grad_scale") is not None,
            tuple([(numbers[move.position], move.norm, move.group) for move in moves]),
            len(numbers),
            taken_by,
            tuple(self._find_changed(still)),
        )
        self.trace.updates.append(row)
        self._edits.note_used(parameters[index] for index, _value in given.regraded)

    def _list_free(self, parameters: Iterable[torch.Tensor]) -> list[tuple[int, torch.Tensor]]:
        """List the first parameters that want a gradient, and that no optimizer holds which has taken a step."""
        numbered = ((self.number(parameter), parameter) for parameter in parameters if parameter.requires_grad)
        free = ((number, one) for number, one in numbered if not self.trace.parameters[number].optimizers)
        return list(islice(free, MAX_MOVES))

    def _find_changed(self, still: Mapping[int, tuple[_Numbers, torch.Tensor]]) -> Iterator[int]:
        """Yield the parameters that are not what the last step left, and note what this one left.

        Args:
            still: those that the step has nothing to move with; each with what it was before the step.
        """
        for number, (now, parameter) in still.items():
            if _have_changed(self._left.get(number, now), now):
                yield number
            self._left[number] = _identify_numbers(parameter)

    def list_held(self, optimizer: Optimizer) -> list[int]:
        """Return the indexes of the parameters that an optimizer holds, which has not taken a step."""
        self._scan_modules()
        return [self.number(parameter) for parameter in list_parameters(optimizer)]

    def _number_held(self, parameters: list[torch.Tensor], optimizer: int) -> list[int]:
        """Return the indexes of the parameters that an optimizer holds; most often they are those of its last step."""
        references, numbers = self._held_numbers.get(optimizer, ([], []))
        is_known = len(references) == len(parameters)
        if not (is_known and all(map(is_, [reference() for reference in references], parameters))):
            references, numbers = [weakref.ref(p) for p in parameters], [self.number(p) for p in parameters]
            self._held_numbers[optimizer] = references, numbers
            for number in numbers:
                self.note_holder(number, optimizer)
        return numbers

    def number(self, tensor: torch.Tensor) -> int:
        """Return the index of a tensor in ``trace.parameters``; a new one gets a row."""
        number = self._numbers.get(tensor)
        if number is None:
            number = len(self.trace.parameters)
            self.trace.parameters.append(ParameterRow((), _read_shape(tensor), tensor.requires_grad, False, False))
            self._numbers.put(tensor, number)
        return number

    def note_holder(self, number: int, optimizer: int) -> None:
        """Note that an optimizer holds a parameter."""
        row = self.trace.parameters[number]
        if optimizer not in row.optimizers:
            self.trace.parameters[number] = row._replace(optimizers=(*row.optimizers, optimizer))

    def forget(self, tensor: torch.Tensor) -> None:
        """Forget the references to a tensor: torch swaps it with another one only if nothing refers to it weakly."""
        self._numbers.forget(tensor)
        self._held_numbers.clear()

    def _scan_modules(self) -> list[torch.nn.Parameter]:
        """Update the rows of the parameters of all known modules, if any has changed since the last scan; list them."""
        modules = list(self.modules.known_modules())
        parameters = module_tree.list_own_parameters([module for _, module in modules])
        marked = {name for name, module in modules if vars(module).get("requires_grad") is False}
        flags = [parameter.requires_grad for parameter in parameters]
        seen = [len(modules), len(self.trace.modules), *map(id, parameters), *flags, *sorted(marked)]
        if seen == self._seen:
            return parameters
        self._seen = seen
        held = [(name, p, module) for name, module in modules for p in module_tree.own_parameters(module)]
        self._norms = [weakref.ref(module) for _, module in modules if issubclass(type(module), _NORMS)]
        self.trace.parameters[:] = [row._replace(held=False) for row in self.trace.parameters]
        for module_name, (name, parameter), module in held:
            is_called = self.modules.find_number(module) is not None
            self._note_place(f"{module_name}.{name}", parameter, is_called)
            self._note_mark(module_name, name, parameter, marked)
        return parameters

    def _note_place(self, name: str, parameter: torch.Tensor, is_called: bool) -> None:
        """Update the row of a parameter that a module holds under ``name``."""
        number = self.number(parameter)
        row = self.trace.parameters[number]
        own_name = self._own_names.get(id(parameter))
        names = row.names if row.held else ()
        names = (*names, own_name if own_name is not None and not names else name)
        is_called = is_called or (row.held and row.called)
        self.trace.parameters[number] = row._replace(
            names=names,
            shape=_read_shape(parameter),
            requires_grad=parameter.requires_grad,
            called=is_called,
            held=True,
            model=(row.model if row.held else "") or name.partition(".")[0],
        )

    def _note_mark(self, module: str, name: str, parameter: torch.Tensor, marked: Container[str]) -> None:
        """Note an attribute that was set to False in vain, on a module (``marked``) or on the parameter itself.

        A parameter that was frozen at some time is none: then something else did freeze it.
        """
        number = self.number(parameter)
        if not parameter.requires_grad:
            self._was_frozen.add(number)
        own = vars(parameter) if type(parameter) in (torch.Tensor, torch.nn.Parameter) else {}
        marks = [f"{path}.requires_grad" for path in (*list_outer_paths(module), module) if path in marked]
        marks += [f"{module}.{name}.{mark}" for mark in _MISSPELT if own.get(mark) is False]
        mark = marks[0] if marks and number not in self._was_frozen else ""
        if mark != self.trace.parameters[number].mark:
            self.trace.parameters[number] = self.trace.parameters[number]._replace(mark=mark)

    def _list_eval_norms(self, optimizer: int) -> Iterator[int]:
        """Yield the modules of batch norm in evaluation mode that ``optimizer`` trains all the same.

        Without running statistics, such a module does the same in both modes.
        """
        for module in (module for reference in self._norms if (module := reference()) is not None):
            number = self.modules.find_number(module)
            if number is None or read_attribute(module, "training") is not False:
                continue
            if "running_mean" not in dict(own_buffers(module)):
                continue
            weight = dict(own_parameters(module)).get("weight")
            if weight is None or read_grad(weight) is None:
                continue
            if optimizer in self.trace.parameters[self.number(weight)].optimizers:
                yield number


def _read_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor; that of a parameter of a lazy module is not known before its first call."""
    return () if is_lazy(tensor) else tuple(tensor.shape)


def read_rate(rate: Any) -> float | None:
    """Read a learning rate; None if it is not there, or on a device, whose work would have to be waited for."""
    if is_tensor(rate):
        return float(rate) if rate.numel() == 1 and not tensor_statistics.reading_waits(rate) else None
    return float(rate) if isinstance(rate, (int, float)) else None


def _identify_numbers(parameter: torch.Tensor) -> _Numbers:
    is_small = can_be_read(parameter) and parameter.is_floating_point() and parameter.numel() <= MAX_NORM
    norm = float(torch.linalg.vector_norm(parameter.detach())) if is_small else None
    return mark_of(parameter), norm if norm is not None and isfinite(norm) else None


def _have_changed(before: _Numbers, now: _Numbers) -> bool:
    return before[0] != now[0] if before[1] is None or now[1] is None else before[1] != now[1]


def _is_zero(gradient: torch.Tensor) -> bool:
    """Whether all numbers of a gradient are 0; False for one that cannot be read at once, such as one on a device.

    The first number of most gradients is not 0, and then the others need not be read.
    """
    if not can_be_read(gradient):
        return False
    if not gradient.numel():
        return True
    try:
        return not gradient[(0,) * gradient.dim()].item() and not gradient.any().item()
    except (RuntimeError, NotImplementedError):  # a dtype that torch can store but not compare
        return False


_PASSES = 2
"""After so many passes an optimizer should have taken a step."""


class _Waiting:
    """An optimizer that was made during the recording and has not taken a step."""

    def __init__(self, optimizer: Optimizer) -> None:
        self.reference = weakref.ref(optimizer)
        self.rows: list[GroupRow] = []
        self.parameters: set[int] = set()
        """The ``id`` of each parameter that it holds."""
        self.passes = 0
        """How many passes wrote gradients of these."""
        self.row: ModuleRow | None = None
        self.held: list[int] = []
        """Its parameters as indexes of ``TraceData.parameters``, once several passes have written their gradients."""


class OptimizerGroups(Follower):
    """Fills ``TraceData.groups``: of an optimizer when it takes its first step, of the others at the end.

    Of one without a step, only those have a row whose parameters got gradients in several passes.
    """

    def __init__(self, trace: TraceData, training: TrainingTracker) -> None:
        self.trace, self._training = trace, training
        self._numbers: IdentityMap[int] = IdentityMap()
        """Optimizer → its number in the trace."""
        self._waiting: dict[int, _Waiting] = {}
        """``id`` of an optimizer → what is known of it before its first step."""

    def add(self, optimizer: Optimizer) -> None:
        """Note the last group of an optimizer, which has just got it: most often while it is made."""
        groups = optimizer.param_groups
        rate, decay = (read_rate(groups[-1].get(name)) for name in ("lr", "weight_decay"))
        row = GroupRow(0, len(groups) - 1, rate, decay, find_code_place())
        number = self._numbers.get(optimizer)
        if number is not None:
            self.trace.groups.append(row._replace(optimizer=number))
            return
        entry = self._waiting.get(id(optimizer))
        if entry is None or entry.reference() is not optimizer:
            self._write_last(self._waiting.pop(id(optimizer), None))
            entry = self._waiting[id(optimizer)] = _Waiting(optimizer)
        entry.rows.append(row)
        entry.parameters.update(map(id, groups[-1]["params"]))

    def number(self, optimizer: Optimizer, number: int) -> None:
        """Write the groups of an optimizer that has got a number."""
        self._numbers.put(optimizer, number)
        entry = self._waiting.pop(id(optimizer), None)
        if entry is not None and entry.reference() is optimizer:
            self.trace.groups += [row._replace(optimizer=number) for row in entry.rows]

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Count the passes that write gradients of the parameters of optimizers without a step."""
        leaves = {id(reference()) for reference in snapshot.leaves.values()} if self._waiting else set()
        for entry in self._waiting.values():
            optimizer = entry.reference()
            if optimizer is not None and not leaves.isdisjoint(entry.parameters):
                entry.passes += 1
                if entry.passes == _PASSES:
                    entry.row, entry.held = describe_optimizer(optimizer), self._training.list_held(optimizer)

    def close(self) -> None:
        """Write the optimizers that took no step."""
        for entry in self._waiting.values():
            self._write_last(entry)

    def _write_last(self, entry: _Waiting | None) -> None:
        if entry is None or entry.row is None:
            return
        number = len(self.trace.optimizers)
        self.trace.optimizers.append(entry.row)
        self.trace.groups += [row._replace(optimizer=number) for row in entry.rows]
        for parameter in entry.held:
            self._training.note_holder(parameter, number)
