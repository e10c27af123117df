"""Callbacks for transformers' Trainer: ``Trainer(model, arguments, callbacks=[RecordSteps([3, 4])], ...)``."""

from collections.abc import Iterable
from typing import Any

from hookviz.api.trace import Trace
from hookviz.integrations.training_recorder import (
    FlightRecording,
    StepRecorder,
    TrainingRecorder,
    check_alone,
    find_caller,
    require_library,
)
from hookviz.recorder.options import Until
from hookviz.trace.value_rows import StatisticsMode

try:
    from transformers import Trainer, TrainerCallback
except ImportError:
    Trainer = TrainerCallback = object

__all__ = ["FlightRecorder", "RecordSteps"]


class _RecordingCallback(TrainerCallback):
    """Tells a recorder what Trainer does."""

    def __init__(self, recorder: TrainingRecorder) -> None:
        require_library(TrainerCallback, "transformers")
        super().__init__()
        self._recorder = recorder
        self._trainer: Any = None
        """The trainer that trains; no event has it."""

    @property
    def traces(self) -> list[Trace]:
        """The last ten traces that were recorded, the newest last."""
        return self._recorder.traces

    def on_train_begin(self, args: Any, state: Any, control: Any, **_ignored: Any) -> None:
        """Note where Trainer writes."""
        self._leave_trainer()
        self._trainer = find_caller(Trainer)
        if self._trainer is not None:
            check_alone(self._trainer.callback_handler.callbacks, _RecordingCallback)
        self._recorder.training_begins(args.output_dir)
        self._notice_exceptions()

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Begin or go on recording."""
        self._recorder.step_begins(state.global_step + 1, given["model"])

    def on_step_end(self, args: Any, state: Any, control: Any, **_ignored: Any) -> None:
        """Pause or end the recording, and log what it measured."""
        norms = self._recorder.step_ends(state.global_step)
        if norms and self._trainer is not None:
            should_log = control.should_log
            self._trainer.log(norms)
            control.should_log = should_log  # or Trainer does not log the loss of this step

    def on_train_end(self, args: Any, state: Any, control: Any, **_ignored: Any) -> None:
        """End the recording."""
        self._leave_trainer()
        self._recorder.training_ends(None)

    def _notice_exceptions(self) -> None:
        """End the recording when a training step raises, which is no event of Trainer's."""
        if self._trainer is None:
            return
        training_step = self._trainer.training_step

        def step_or_end(*args: Any, **kwargs: Any) -> Any:
            try:
                return training_step(*args, **kwargs)
            except BaseException as error:
                self._leave_trainer()
                self._recorder.training_ends(error)
                raise

        self._trainer.training_step = step_or_end

    def _leave_trainer(self) -> None:
        """Give Trainer its own method back."""
        if self._trainer is not None:
            vars(self._trainer).pop("training_step", None)
            self._trainer = None


class RecordSteps(_RecordingCallback):
    """Record chosen training steps, and write a page for them in ``output_dir``, in the folder ``hookviz``.

    A step is a step of the optimizer, counted from 1 as ``state.global_step`` counts them. With
    ``gradient_accumulation_steps``, it consists of several batches. Steps that follow each other are in one trace.
    Evaluation is not recorded.

    Args:
        steps: the steps to record, such as ``[3, 4]`` or ``range(100, 103)``.
        every: instead of ``steps``, 100 records the steps 100, 200, and so on.
        log_norms: True also gives ``trainer.log`` the norm of the gradient of each layer in the steps that are
            recorded: of all parameters that a module holds itself, before clipping, and unscaled. Their names begin
            with ``gradient norm/``.
        statistics, cuts, histograms: as in ``hookviz.record``.

    Raises:
        ImportError: transformers is not installed.
        TypeError, ValueError: neither or both of ``steps`` and ``every`` are given, a step is not a whole number of at
            least 1, or ``hookviz.record`` refuses an option.

    >>> record = RecordSteps([3, 4])  # doctest: +SKIP
    >>> trainer = Trainer(model, arguments, train_dataset=dataset, callbacks=[record])  # doctest: +SKIP
    """

    def __init__(
        self,
        steps: Iterable[int] | None = None,
        *,
        every: int | None = None,
        log_norms: bool = False,
        statistics: StatisticsMode | None = None,
        cuts: bool = False,
        histograms: bool = False,
    ) -> None:
        options = {"statistics": statistics, "cuts": cuts, "histograms": histograms}
        super().__init__(StepRecorder(steps, every, log_norms, **options))


class FlightRecorder(_RecordingCallback):
    """Keep the last passes of a training; write them as a page when NaN or Inf appears, or an exception is raised.

    The page is ``trouble.html`` in ``output_dir``, in the folder ``hookviz``. After NaN or Inf the training goes on
    unobserved. An exception counts if it is raised in ``trainer.training_step``. Evaluation is not recorded.

    Args:
        keep: how many backward passes to keep.
        until: when to stop recording, as in ``hookviz.record``: ``"nan"``, or a function of the trace.
        statistics: as in ``hookviz.record``. ``"norm"`` costs the least, and misses no NaN or Inf.

    Raises:
        ImportError: transformers is not installed.
        TypeError, ValueError: ``hookviz.record`` refuses an option.

    >>> recorder = FlightRecorder(keep=10)  # doctest: +SKIP
    >>> trainer = Trainer(model, arguments, train_dataset=dataset, callbacks=[recorder])  # doctest: +SKIP
    """

    def __init__(self, keep: int = 5, *, until: Until = "nan", statistics: StatisticsMode | None = "norm") -> None:
        super().__init__(FlightRecording(keep=keep, until=until, statistics=statistics))
