"""What the callbacks for all trainers share: when a recording begins and ends, and the files that it writes.

A step is a step of the optimizer, counted from 1 as the trainers count them: with accumulated gradients, it has several
backward passes. Only steps are recorded: what runs between two of them, such as an evaluation, is left out.
"""

import math
import sys
import traceback
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from hookviz.api.trace import Trace, data_of
from hookviz.autograd.module_tree import named_parameters
from hookviz.recorder import record
from hookviz.recorder.followers.stop_condition import TroubleFile
from hookviz.recorder.notes import Notes
from hookviz.recorder.open_recordings import give_way
from hookviz.recorder.options import RecordOptions
from hookviz.support.groups import group
from hookviz.support.messages import N_, _, join_list
from hookviz.support.printable import check_flag, describe_type
from hookviz.trace.values import Value

MAX_TRACES = 10
"""So many traces stay in memory, the last ones; the pages of the others are in the folder."""
_MISSING = N_('{library} is not installed: install it with: pip install "hookviz[{extra}]"')


def require_library(base: type, library: str) -> None:
    """Check that a callback has the base class of its library, for which hookviz has an extra of the same name.

    Raises:
        ImportError: it has ``object``, which stands for a library that is not installed.
    """
    if base is object:
        raise ImportError(_(_MISSING).format(library=library, extra=library), name=library)


def check_alone(callbacks: Iterable[object], kind: type) -> None:
    """Check that a trainer has one callback of hookviz's: one recording is open at a time.

    Raises:
        RuntimeError: it has several.
    """
    names = [type(callback).__name__ for callback in callbacks if isinstance(callback, kind)]
    if len(names) > 1:
        raise RuntimeError(
            _(
                "One recording is open at a time; this trainer has {count} callbacks that record: {names}. Keep one."
            ).format(count=len(names), names=join_list(names))
        )


class OpenRecording:
    """A recording that a callback begins, pauses between two steps, and ends.

    It gives way to a recording that the program begins itself, so that a training that stops without a word, such as
    one that the user interrupts, leaves nothing behind that refuses the next recording.
    """

    def __init__(self, model: torch.nn.Module, **options: Any) -> None:
        self._block = record(model, **options)
        self.trace = self._block.__enter__()
        self.sampler = give_way().sampler
        """Its ``is_paused`` says whether nothing is recorded for now."""

    def end(self, error: BaseException | None) -> None:
        """End the recording, because of ``error`` if there was one."""
        self.sampler.is_paused = False
        self._block.__exit__(None if error is None else type(error), error, None)


class TrainingRecorder:
    """Records a training as its callback tells of steps that begin and end."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self._folder = Path()
        self._open: OpenRecording | None = None

    def training_begins(self, folder: str | Path) -> None:
        """Make the folder of the pages. A recording that an earlier training has left open ends.

        Raises:
            OSError: the folder cannot be made.
        """
        self.training_ends(None)
        self._folder = Path(folder).absolute() / "hookviz"
        self._folder.mkdir(parents=True, exist_ok=True)

    def step_begins(self, step: int, model: torch.nn.Module) -> None:
        """Note that step number ``step`` begins, or another backward pass that belongs to it."""
        if self._open is not None:
            self._open.sampler.is_paused = False

    def step_ends(self, done: int) -> dict[str, float]:
        """Note that ``done`` steps were taken so far, and return numbers for the trainer's logger: name → number."""
        if self._open is not None:
            self._open.sampler.is_paused = True
        return {}

    def training_ends(self, error: BaseException | None) -> None:
        """End a recording that is open, because of ``error`` if there was one."""
        recording, self._open = self._open, None
        if recording is not None:
            recording.end(error)

    def _open_recording(self, model: torch.nn.Module, **options: Any) -> None:
        self._open = OpenRecording(model, **options)
        self.traces = [*self.traces, self._open.trace][-MAX_TRACES:]

    def _name_file(self, name: str) -> Path:
        """Return the page of this name in the folder. If several ranks train, each has a page."""
        is_one_of_many = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        return self._folder / f"{name}{f'_rank{dist.get_rank()}' if is_one_of_many else ''}.html"


class ChosenSteps:
    """The training steps to record: those of a list, or every n-th."""

    def __init__(self, steps: Iterable[int] | None, every: int | None) -> None:
        if (steps is None) is (every is None):
            raise ValueError(
                _("Say which steps to record, either as RecordSteps([3, 4]) or as RecordSteps(every=100).")
            )
        if steps is not None and (isinstance(steps, str) or not isinstance(steps, Iterable)):
            raise TypeError(
                _("steps is a list of training steps such as [3, 4]; this is {kind}.").format(kind=describe_type(steps))
            )
        self._every = every
        self._steps: Collection[int] = [] if steps is None else sorted(steps)
        numbers: Iterable[Any] = [every] if steps is None else self._steps
        for number in numbers:
            is_number = isinstance(number, int) and not isinstance(number, bool)
            if not is_number or number < 1:
                raise (ValueError if is_number else TypeError)(
                    _("Training steps are whole numbers from 1 on; this is {number}.").format(number=repr(number))
                )

    def has_one(self, after: int, last: int) -> bool:
        """Return whether a step later than ``after``, and not later than ``last``, is to be recorded."""
        if self._every is not None:
            return last // self._every > after // self._every
        return any(after < step <= last for step in self._steps)


class StepRecorder(TrainingRecorder):
    """Records chosen steps, those that follow each other in one trace, and writes a page for each trace."""

    def __init__(self, steps: Iterable[int] | None, every: int | None, log_norms: bool, **options: Any) -> None:
        super().__init__()
        self._chosen = ChosenSteps(steps, every)
        check_flag("log_norms", log_norms)
        RecordOptions(**options).check()
        self._log_norms, self._options = log_norms, options
        self._asked: int | None = None
        """Up to this step it is decided what is recorded."""
        self._model: torch.nn.Module | None = None
        self._first = self._running = self._row = 0
        """The first step of the open recording, the one that runs, and the first row of the latter."""

    def training_begins(self, folder: str | Path) -> None:
        """Forget where an earlier training was."""
        super().training_begins(folder)
        self._asked = None

    def step_begins(self, step: int, model: torch.nn.Module) -> None:
        """Begin a recording if it is the turn of this step."""
        super().step_begins(step, model)
        asked = step - 1 if self._asked is None else self._asked
        if self._open is None and self._chosen.has_one(asked, step):
            self._open_recording(model, **self._options)
            self._first, self._row, self._model = step, 0, model
        self._running = self._asked = step

    def step_ends(self, done: int) -> dict[str, float]:
        """End the recording if the next step does not belong to it; return the norms of the gradients of this step."""
        super().step_ends(done)
        if self._open is None or self._model is None or done < self._running:
            return {}
        self._running = self._asked = done
        trace = self._open.trace
        norms = measure_layers(trace, self._row, self._model) if self._log_norms else {}
        self._row = len(trace.steps)
        if not self._chosen.has_one(done, done + 1):
            self.training_ends(None)
        return norms

    def training_ends(self, error: BaseException | None) -> None:
        """End the open recording and write its page."""
        recording, self._model = self._open, None
        super().training_ends(error)
        if recording is None:
            return
        if self._running <= self._first:
            name, title = f"step_{self._first}", _("Training step {step}").format(step=self._first)
        else:
            steps = f"{self._first}-{self._running}"
            title = _("Training steps {steps}").format(steps=f"{self._first}–{self._running}")
            name = f"steps_{steps}"
        data = data_of(recording.trace)
        file = TroubleFile(data, Notes(data), self._name_file(name), title)
        file.write(_("{steps} recorded.").format(steps=title))


class FlightRecording(TrainingRecorder):
    """Keeps the last passes of a training, and writes a page when something goes wrong."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        RecordOptions(**options).check()
        self._options = options

    def step_begins(self, step: int, model: torch.nn.Module) -> None:
        """Begin the recording with the first step."""
        super().step_begins(step, model)
        if self._open is None:
            self._open_recording(model, on_trouble=self._name_file("trouble"), **self._options)


def measure_layers(trace: Trace, first: int, model: torch.nn.Module) -> dict[str, float]:
    """Return ``gradient norm/LAYER`` → the norm of the gradient of all parameters that a module holds itself.

    It is what the backward passes from row ``first`` on left in ``.grad``: before clipping, averaged over the ranks of
    DDP, and without the factor of a GradScaler.
    """
    parameters = {path for path, _parameter in named_parameters(model)}
    norms: dict[str, float] = {}
    for step in trace.steps[first:]:
        path = _find_path(step.on, parameters) if step.kind in ("accumulate", "synchronise") else ""
        if path and isinstance(step.after, Value) and step.after.norm is not None:
            norms[path] = step.after.norm / (step.scale or 1)
    layers = group((path.rpartition(".")[0] or path, norm) for path, norm in norms.items())
    return {f"gradient norm/{layer}": math.hypot(*found) for layer, found in layers.items()}


def _find_path(name: str, paths: Collection[str]) -> str:
    """Return the path in the model of a parameter that a trace calls ``name``; empty if it is none.

    >>> _find_path("self.net.0.weight", {"0.weight", "0.bias"})
    '0.weight'
    """
    while name and name not in paths:
        name = name.partition(".")[2]
    return name


def find_caller(kind: type) -> Any:
    """Return the ``self`` of the innermost running method of a class; None if none runs."""
    for frame, _line in traceback.walk_stack(sys._getframe(1)):
        caller = frame.f_locals.get("self") if "self" in frame.f_code.co_varnames else None
        if issubclass(type(caller), kind):
            return caller
    return None
