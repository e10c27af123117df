"""The optimizer steps of a recording: each step, and the hooks that torch runs before and after it."""

import sys
import weakref
from collections import UserDict
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import torch
from torch.optim import Optimizer

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import add_hook_row
from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.autograd.torch_internals import profile_step
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.fingerprint import fingerprint_of
from hookviz.recorder.pytree import row_of
from hookviz.recorder.session import Session
from hookviz.trace import HookPlace, ModuleRow, StepRow

Hook = Callable[..., Any]

COMPARED = 4096
"""Parameters and gradients of up to so many numbers in all are compared number by number around each hook."""

STEP_CODE = profile_step(print).__code__ if profile_step else None
"""The code that torch puts around the step of every optimizer, and that runs the hooks."""


def in_step() -> bool:
    """Whether the caller of our caller is torch, running an optimizer's step."""
    return sys._getframe(2).f_code is STEP_CODE and not torch.compiler.is_compiling()


class OptimizerStep:
    """One step of an optimizer while it runs."""

    def __init__(self, number: int, raised: int | None) -> None:
        self.number, self.raised = number, raised
        self.entry: tuple[Any, ...] | None = None
        """(kind, whether it is one of all optimizers, key, function, place) of the hook that is running."""
        self.last: tuple[Any, ...] = ()
        """What was seen before that hook ran."""


class OptimizerTracker:
    """Follows the optimizers that are stepped in the thread of a recording."""

    def __init__(self, session: Session) -> None:
        self.session, self.trace = session, session.trace
        self._numbers: dict[int, tuple[weakref.ref[Optimizer], int]] = {}
        self._running: list[OptimizerStep] = []

    def follows(self) -> bool:
        """Whether the step that runs, or begins, in the thread of the recording is one that is followed."""
        return bool(self._running) or self.session.sampler.after()

    def begin(self, optimizer: Optimizer) -> None:
        """A step begins: its hooks are about to run."""
        self._running.append(OptimizerStep(self.number(optimizer), self.session.exceptions.enter()))

    def stepped(self, optimizer: Optimizer) -> None:
        """The step itself is over; torch is about to run the hooks after it."""
        if not self._running:  # the recording began inside this step
            return
        count = sum(len(group["params"]) for group in optimizer.param_groups)
        self.trace.values.append(row_of(count))
        self._log("optimizer_step", self._running[-1], after=len(self.trace.values) - 1)

    def end(self, error: BaseException | None) -> None:
        """The step and its hooks have run, or ``error`` ended them."""
        if not self._running:
            return
        step = self._running.pop()
        if error is None:
            self.session.exceptions.leave(step.raised)
        elif self.session.exceptions.is_new(error):
            hook = None if step.entry is None else self._hook(step)
            self._log("exception", step, hook=hook, error=exception_text(error))

    def before(self, entry: tuple[Any, ...], given: tuple[Any, ...]) -> None:
        """A hook is about to be called."""
        if self._running:
            self._running[-1].entry, self._running[-1].last = entry, _seen(*given)

    def after(self, given: tuple[Any, ...]) -> None:
        """The hook that was called has run."""
        if not self._running:
            return
        step = self._running[-1]
        (kind, *_, place), now = step.entry or (), _seen(*given)
        replaced, marked, tuned, written = (one != other for one, other in zip(step.last, now, strict=True))
        known = "kept" if now[-1] is not None else "ran"
        effect = "replaced" if replaced else "edited" if marked or tuned or written else known
        subject = "settings" if tuned and not (marked or written) else "gradient"
        self._log(kind, step, hook=self._hook(step), place=place, before=(), after=(), effect=effect, subject=subject)
        step.entry = None

    def alive(self) -> Iterator[tuple[str, Optimizer]]:
        """(name, optimizer) of every optimizer that was stepped and is still there."""
        for reference, number in self._numbers.values():
            optimizer = reference()
            if optimizer is not None:
                yield self.trace.optimizers[number].name, optimizer

    def _hook(self, step: OptimizerStep) -> int:
        kind, shared, key, function, _ = step.entry or ()
        owner, flags = (-1, ("global",)) if shared else (step.number, ())
        return add_hook_row(self.trace, None, kind, -1, -1, key, function, module=owner, flags=flags)

    def number(self, optimizer: Optimizer) -> int:
        """The number of an optimizer in the trace."""
        reference, number = self._numbers.get(id(optimizer), (None, 0))
        if reference is None or reference() is not optimizer:
            kind, number = type(optimizer).__name__, len(self.trace.optimizers)
            name = graph.variable_name(optimizer, graph.caller_frame()) or kind
            self.trace.optimizers.append(ModuleRow(name, kind))
            self._numbers[id(optimizer)] = (weakref.ref(optimizer), number)
        return number

    def _log(self, kind: str, step: OptimizerStep, **known: Any) -> None:
        number = max(len(self.trace.roots) - 1, 0)  # a step belongs to the pass before it
        self.trace.rows.append(StepRow(number, kind, optimizer=step.number, **known))


def _seen(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """What hooks may replace (the arguments), and edit: parameters and gradients, settings.

    A write through ``.data`` leaves no mark, so the numbers are compared, too, where they are few: last, or None.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    held = [*parameters, *(p.grad for p in parameters if p.grad is not None)]
    marks = [
        (fingerprint_of(p).mark, p.grad is not None and (id(p.grad), fingerprint_of(p.grad).mark)) for p in parameters
    ]
    groups = [{name: group[name] for name in group if name != "params"} for group in optimizer.param_groups]
    settings = [{name: _setting(value) for name, value in group.items()} for group in groups]
    return (id(args), id(kwargs)), marks, settings, _numbers(held)


def _setting(value: Any) -> Any:
    """What a setting shows without running anybody's code; it differs once the setting is changed."""
    if isinstance(value, torch.Tensor):
        return id(value), fingerprint_of(value).mark, _numbers([value])
    if isinstance(value, (tuple, list)):
        return id(value) if isinstance(value, list) else None, [_setting(part) for part in value]
    return repr(value) if type(value) in (bool, int, float, complex, str) else id(value)


def _numbers(tensors: list[torch.Tensor]) -> str | None:
    """All numbers in ``tensors``; None where they are many, or cannot be read at once."""
    plain = all(type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.is_cpu for tensor in tensors)
    if not plain or sum(tensor.numel() for tensor in tensors) > COMPARED:
        return None
    try:
        with hidden_from_tools():
            return repr([tensor.detach().tolist() for tensor in tensors])
    except Exception:  # a kind of tensor that torch itself cannot read
        return None


class Between(UserDict[Any, Hook]):
    """A dict of step hooks that looks at what passes between them whenever torch runs them, and is that dict otherwise.

    Nothing is put into the dict itself: torch goes through it as it stands, so that a hook which changes it on the way
    gets the same error or none as ever; and steps of other threads never meet it half changed.
    """

    def __init__(self, kind: str, hooks: Any, here: Callable[[], OptimizerTracker | None], *, shared: bool) -> None:
        self.data, self.kind, self.shared, self.here = hooks, kind, shared, here

    def values(self) -> Any:
        """The hooks; in a step of a thread that is observed, with something that looks before and after each."""
        tracker = self.here() if in_step() else None
        if tracker is None:
            return self.data.values()
        # torch's own functions go through the dict, and so no frame of ours can get into a traceback.
        watching = _Watching(self, tracker)
        return chain.from_iterable(map(watching.around, chain(self.data.items())))


class _Watching:
    """Looks before and after each hook of one dict in one step."""

    def __init__(self, hooks: Between, tracker: OptimizerTracker) -> None:
        self.kind, self.shared, self.tracker = hooks.kind, hooks.shared, tracker
        self.places, self.total = iter(range(len(hooks.data))), hooks.data

    def around(self, item: tuple[Any, Hook]) -> Iterator[Hook]:
        place = HookPlace(next(self.places, 0), len(self.total))
        entry = (self.kind, self.shared, *item, place)
        return iter((self._before(entry), item[1], self._after))

    def _before(self, entry: tuple[Any, ...]) -> Hook:
        def look(*given: Any) -> None:
            self.tracker.session.guard(self.tracker.before, entry, given)

        return look

    def _after(self, *given: Any) -> None:
        self.tracker.session.guard(self.tracker.after, given)


class OnOptimizer:
    """Stands on the class of all optimizers for the attribute that holds an optimizer's own step hooks."""

    def __init__(self, name: str, kind: str, here: Callable[[], OptimizerTracker | None]) -> None:
        self.name, self.kind, self.here = name, kind, here

    def __get__(self, optimizer: Optimizer | None, owner: type) -> Any:
        """The dict of hooks, and to torch in a step: the same with observers between them."""
        hooks = None if optimizer is None else vars(optimizer).get(self.name)
        if hooks is None or optimizer is None:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self.name!r}")
        steps = self.here() if in_step() else None
        if steps is None:
            return hooks
        steps.session.guard(steps.begin if self.kind == "step_pre_hook" else steps.stepped, optimizer)
        return Between(self.kind, hooks, self.here, shared=False)

    def __set__(self, optimizer: Optimizer, hooks: Any) -> None:
        vars(optimizer)[self.name] = hooks

    def __delete__(self, optimizer: Optimizer) -> None:
        del vars(optimizer)[self.name]
