"""Records optimizer steps, and the hooks that torch runs before and after each step."""

import sys
import weakref
from collections import Counter, UserDict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch.optim import Optimizer

from hookviz.autograd.graph_snapshot import GraphSnapshot, add_hook_row
from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_statistics import can_be_read, hidden_from_tools
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import OPTIMIZER_HOOKS, profile_step, read_grad
from hookviz.recorder.exception_tracker import describe_exception
from hookviz.recorder.fingerprint import fingerprint_of
from hookviz.recorder.follower import Follower, Followers
from hookviz.recorder.followers.moved_parameters import MovedParameters
from hookviz.recorder.followers.training_tracker import (
    Given,
    Move,
    OptimizerGroups,
    TrainingTracker,
    copy_parameters,
    describe_optimizer,
    list_parameters,
    measure_moves,
)
from hookviz.recorder.modules.arguments import object_row
from hookviz.recorder.open_recordings import optimizer_tracker_here
from hookviz.recorder.session import Session
from hookviz.trace import HookPlace, StepKind, StepRow

Hook = Callable[..., Any]

MAX_COMPARED = 4096
"""Up to this many parameters and gradients in all are compared number by number around each hook."""

STEP_CODE = profile_step(print).__code__ if profile_step else None
"""The code that torch wraps around the step of every optimizer, and that runs the hooks."""


def is_called_by_step() -> bool:
    """Return whether the caller's caller is torch's code around an optimizer's step."""
    return sys._getframe(2).f_code is STEP_CODE and not torch.compiler.is_compiling()


class OptimizerStep:
    """One step of an optimizer, while it runs."""

    def __init__(self, optimizer: Optimizer, number: int, earlier_exception: int | None, pass_count: int) -> None:
        self.optimizer, self.number, self.earlier_exception = optimizer, number, earlier_exception
        self.given: Given | None = None
        """What the optimizer has for the step: as it is before the step, or after the last pass that the step runs."""
        self.pass_count, self.passes_before = pass_count, pass_count
        """How many passes had begun when that was read, and when the step began."""
        self.row: int | None = None
        """The row of the step in the trace, once the step itself is done."""
        self.entry: tuple[Any, ...] | None = None
        """(kind, whether it is a global hook, key, function, place) of the hook that is running."""
        self.seen_before: tuple[Any, ...] = ()
        """The snapshot from before that hook."""
        self.copies: Sequence[Any] = ()
        """The first parameters, from before the step."""

    def copy_parameters(self, optimizer: Optimizer) -> None:
        """Copy the first parameters."""
        self.copies = copy_parameters(optimizer)


class OptimizerTracker(Follower):
    """Follows the optimizer steps in the thread of a recording."""

    def __init__(
        self,
        session: Session,
        training: TrainingTracker,
        groups: OptimizerGroups,
        moved: MovedParameters,
        followers: Followers,
    ) -> None:
        self.session, self.trace, self.followers = session, session.trace, followers
        self.training, self.groups, self.moved = training, groups, moved
        self._numbers: IdentityMap[int] = IdentityMap()
        self._numbers_by_reference: dict[int, tuple[weakref.ref[Optimizer], int]] = {}
        """``id`` of the reference to an optimizer → it and the number, also when the optimizer is gone."""
        self._running: list[OptimizerStep] = []
        self._counts: Counter[int] = Counter()
        """Number of an optimizer → how many steps it took."""

    def is_following(self) -> bool:
        """Return whether the step that is running or about to run in this thread is recorded."""
        return bool(self._running) or self.session.sampler.was_recorded()

    def begin(self, optimizer: Optimizer) -> None:
        """Begin a step, before its hooks run."""
        number, pass_count = self.number(optimizer), self.session.sampler.pass_count
        self._running.append(OptimizerStep(optimizer, number, self.session.exceptions.enter(), pass_count))
        self.followers.tell("optimizer_begins", optimizer)
        self.session.attempt(self._read_given, self._running[-1])
        self.session.attempt(self._running[-1].copy_parameters, optimizer)
        self.session.attempt(self.moved.step_begins, optimizer)

    def step_done(self, optimizer: Optimizer) -> None:
        """Record that the step itself is done, before torch runs the hooks after it."""
        if not self._running or self._is_part():  # the recording may have begun inside this step
            return
        self._counts[self._running[-1].number] += 1
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        self.trace.values.append(object_row(count))
        step = self._running[-1]
        step.row = len(self.trace.rows)
        self._log("optimizer_step", step, after=len(self.trace.values) - 1)
        self.followers.tell("optimizer_stepped", optimizer)
        moves, step.copies = measure_moves(step.copies), ()
        self.session.attempt(self._add_update, step, moves)

    def _is_part(self) -> bool:
        """Whether the step that runs last is a part of one of the same optimizer, which calls ``super().step()``."""
        *others, last = self._running
        return any(step.number == last.number for step in others)

    def _read_given(self, step: OptimizerStep) -> None:
        step.given, step.pass_count = self.training.read_given(step.optimizer), self.session.sampler.pass_count

    def _add_update(self, step: OptimizerStep, moves: Sequence[Move]) -> None:
        if step.given is None or step.pass_count != self.session.sampler.pass_count:  # a pass that is not recorded
            self._read_given(step)
        given = step.given
        assert given is not None and step.row is not None
        if step.pass_count != step.passes_before:
            given = self.training.add_later_edits(step.optimizer, given)
        around = self._running[-2].number if len(self._running) > 1 else None
        self.training.add_update(step.optimizer, step.row, given, moves, around)

    def pass_ended(self, snapshot: GraphSnapshot) -> None:
        """Read anew what the running steps are given: a closure ran a pass."""
        for step in self._running:
            self.session.attempt(self._read_given, step)

    def end(self, error: BaseException | None) -> None:
        """End a step: its hooks have run, or ``error`` ended it."""
        if not self._running:
            return
        step = self._running.pop()
        if error is None:
            self.session.exceptions.leave(step.earlier_exception)
            if step.row is not None:
                self.session.attempt(self.moved.step_ended, step.row)
        elif self.session.exceptions.is_new(error):
            hook = None if step.entry is None else self._hook(step)
            self._log("exception", step, hook=hook, **describe_exception(error))

    def before_hook(self, entry: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """Take a snapshot before a hook is called."""
        if self._running:
            self._running[-1].entry, self._running[-1].seen_before = entry, _snapshot_optimizer(*given)

    def after_hook(self, given: tuple[Any, ...]) -> None:
        """Record what the hook that just ran has changed."""
        if not self._running:
            return
        step = self._running[-1]
        (kind, *_, place), now = step.entry or (), _snapshot_optimizer(*given)
        arguments, marks, settings, numbers = (old != new for old, new in zip(step.seen_before, now, strict=True))
        unchanged = "kept" if now[-1] is not None else "ran"
        effect = "replaced" if arguments else "edited" if marks or settings or numbers else unchanged
        subject = "settings" if settings and not (marks or numbers) else "gradient"
        fields = {"hook": self._hook(step), "place": place, "effect": effect, "subject": subject}
        is_early = kind == "step_pre_hook" and _gets_function(given)
        self._log(kind, step, is_early=is_early, before=(), after=(), **fields)
        step.entry = None
        if kind == "step_pre_hook":
            self.session.attempt(self._read_given, step)
            if marks or numbers:
                self.session.attempt(step.copy_parameters, given[0])

    def alive_optimizers(self) -> Iterator[tuple[str, Optimizer]]:
        """Yield (name, optimizer) for every optimizer that was stepped and still exists."""
        for optimizer, number in self._numbers.items():
            yield self.trace.optimizers[number].name, optimizer

    def number_of(self, reference: "weakref.ref[Optimizer]") -> int | None:
        """Return the number of an optimizer that may no longer exist; None if it took no step."""
        return self._numbers_by_reference.get(id(reference), (None, None))[1]

    def count_steps(self, number: int) -> int:
        """Return how many steps the optimizer with this number took in the whole recording."""
        return self._counts[number]

    def _hook(self, step: OptimizerStep) -> int:
        kind, shared, key, function, _ = step.entry or ()
        owner, flags = (None, ("global",)) if shared else (step.number, ())
        return add_hook_row(self.trace, None, kind, None, None, key, function, optimizer=owner, flags=flags)

    def number(self, optimizer: Optimizer) -> int:
        """Return the number of an optimizer in the trace."""
        number = self._numbers.get(optimizer)
        if number is None:
            number = len(self.trace.optimizers)
            self.trace.optimizers.append(describe_optimizer(optimizer))
            self.groups.number(optimizer, number)
            self._numbers.put(optimizer, number)
            reference = weakref.ref(optimizer)
            self._numbers_by_reference[id(reference)] = reference, number
        return number

    def _log(self, kind: StepKind, step: OptimizerStep, *, is_early: bool = False, **fields: Any) -> None:
        """Add a step. It belongs to the last pass; if it is early, to the next one, which a closure will run."""
        number = len(self.trace.roots) if is_early else self.session.last_pass
        self.trace.rows.append(StepRow(number, kind, optimizer=step.number, **fields))


def _gets_function(given: tuple[Any, ...]) -> bool:
    """Return whether the step of an optimizer got a function that runs its pass, which is still to come then."""
    _, args, kwargs = given
    return any(map(callable, args[1:])) or callable(kwargs.get("closure"))


def _snapshot_optimizer(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Snapshot what hooks may replace (the arguments) and edit (parameters and gradients, settings).

    A write through ``.data`` leaves the version as it is. So the last item holds the numbers themselves, or None if
    there are too many.
    """
    parameters = list_parameters(optimizer)
    gradients = [read_grad(parameter) for parameter in parameters]
    tensors = [*parameters, *(grad for grad in gradients if grad is not None)]
    marks = [
        (fingerprint_of(parameter).mark, grad is not None and (id(grad), fingerprint_of(grad).mark))
        for parameter, grad in zip(parameters, gradients, strict=True)
    ]
    groups = [{name: group[name] for name in group if name != "params"} for group in optimizer.param_groups]
    settings = [{name: _setting_fingerprint(value) for name, value in group.items()} for group in groups]
    return (id(args), id(kwargs)), marks, settings, _read_numbers(tensors)


def _setting_fingerprint(value: Any) -> Any:
    """Return what identifies the value of a setting, without running the user's code."""
    if is_tensor(value):
        return id(value), fingerprint_of(value).mark, _read_numbers([value])
    if isinstance(value, (tuple, list)):
        return id(value) if isinstance(value, list) else None, [_setting_fingerprint(part) for part in value]
    return repr(value) if type(value) in (bool, int, float, complex, str) else id(value)


def _read_numbers(tensors: list[torch.Tensor]) -> str | None:
    """Return all numbers in ``tensors`` as text; None if there are too many, or they cannot be read at once."""
    if not all(map(can_be_read, tensors)) or sum(tensor.numel() for tensor in tensors) > MAX_COMPARED:
        return None
    try:
        with hidden_from_tools():
            return repr([tensor.detach().tolist() for tensor in tensors])
    except Exception:  # a kind of tensor that torch itself cannot read
        return None


class ObservedStepHooks(UserDict[Any, Hook]):
    """A dict of step hooks with observers between them while torch runs them in a recorded step.

    Nothing is put into the dict itself. torch iterates over it directly, so a hook that changes the dict meanwhile gets
    the usual error, and steps of other threads never see it half changed.
    """

    def __init__(self, kind: str, hooks: Any, *, shared: bool) -> None:
        self.data, self.kind, self.shared = hooks, kind, shared

    def values(self) -> Any:
        """Return the hooks; in an observed step, with an observer before and after each."""
        tracker = optimizer_tracker_here() if is_called_by_step() else None
        if tracker is None:
            return self.data.values()
        # C functions iterate over the dict, so that no frame of ours gets into a traceback.
        watcher = _StepHookWatcher(self, tracker)
        return chain.from_iterable(map(watcher.around, chain(self.data.items())))


class _StepHookWatcher:
    """Observes before and after each hook of one dict in one step."""

    def __init__(self, hooks: ObservedStepHooks, tracker: OptimizerTracker) -> None:
        self.kind, self.shared, self.tracker = hooks.kind, hooks.shared, tracker
        self.places, self.total = iter(range(len(hooks.data))), hooks.data

    def around(self, item: tuple[Any, Hook]) -> Iterator[Hook]:
        place = HookPlace(next(self.places, 0), len(self.total))
        entry = (self.kind, self.shared, *item, place)
        return iter((self._before(entry), item[1], self._after))

    def _before(self, entry: tuple[Any, ...]) -> Hook:
        def look(*given: Any) -> None:
            self.tracker.session.guard(self.tracker.before_hook, entry, given)

        return look

    def _after(self, *given: Any) -> None:
        self.tracker.session.guard(self.tracker.after_hook, given)


class StepHooksDescriptor:
    """A descriptor on the Optimizer class for the attribute that holds an optimizer's own step hooks."""

    def __init__(self, kind: str) -> None:
        self.name, self.kind = OPTIMIZER_HOOKS[kind], kind

    def __get__(self, optimizer: Optimizer | None, owner: type) -> Any:
        """Return the hook dict; to torch in a recorded step, return it with observers between the hooks."""
        hooks = None if optimizer is None else vars(optimizer).get(self.name)
        if hooks is None or optimizer is None:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        tracker = optimizer_tracker_here() if is_called_by_step() else None
        if tracker is None:
            return hooks
        reached = tracker.begin if self.kind == "step_pre_hook" else tracker.step_done
        tracker.session.guard(reached, optimizer)
        return ObservedStepHooks(self.kind, hooks, shared=False)

    def __set__(self, optimizer: Optimizer, hooks: Any) -> None:
        vars(optimizer)[self.name] = hooks

    def __delete__(self, optimizer: Optimizer) -> None:
        del vars(optimizer)[self.name]
