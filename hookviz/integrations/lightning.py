"""Callbacks for Lightning: ``lightning.Trainer(callbacks=[RecordSteps([3, 4])])``."""

from collections.abc import Iterable
from typing import Any

from hookviz.api.trace import Trace
from hookviz.integrations.training_recorder import (
    FlightRecording,
    StepRecorder,
    TrainingRecorder,
    check_alone,
    require_library,
)
from hookviz.recorder.options import Until
from hookviz.trace.value_rows import StatisticsMode

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError:
        Callback = object

__all__ = ["FlightRecorder", "RecordSteps"]


class _RecordingCallback(Callback):
    """Tells a recorder what Lightning does."""

    def __init__(self, recorder: TrainingRecorder) -> None:
        require_library(Callback, "lightning")
        super().__init__()
        self._recorder = recorder

    @property
    def traces(self) -> list[Trace]:
        """The last ten traces that were recorded, the newest last."""
        return self._recorder.traces

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Note where Lightning writes."""
        check_alone(trainer.callbacks, _RecordingCallback)
        self._recorder.training_begins(trainer.log_dir or trainer.default_root_dir)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *_ignored: Any) -> None:
        """Begin or go on recording."""
        self._recorder.step_begins(trainer.global_step + 1, pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_ignored: Any) -> None:
        """Pause or end the recording, and log what it measured."""
        norms = self._recorder.step_ends(trainer.global_step)
        for logger in trainer.loggers if norms else ():
            logger.log_metrics(norms, step=trainer.global_step - 1)  # Lightning's loggers count from 0

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """End the recording."""
        self._recorder.training_ends(None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the recording with the exception."""
        self._recorder.training_ends(exception)


class RecordSteps(_RecordingCallback):
    """Record chosen training steps, and write a page for them in ``trainer.log_dir``, in the folder ``hookviz``.

    A step is a step of the optimizer, counted from 1 as ``trainer.global_step`` counts them. With
    ``accumulate_grad_batches``, it consists of several batches. Steps that follow each other are in one trace.
    Validation is not recorded.

    Args:
        steps: the steps to record, such as ``[3, 4]`` or ``range(100, 103)``.
        every: instead of ``steps``, 100 records the steps 100, 200, and so on.
        log_norms: True also gives ``trainer.loggers`` the norm of the gradient of each layer in the steps that are
            recorded: of all parameters that a module holds itself, before clipping, and unscaled. Their names begin
            with ``gradient norm/``.
        statistics, cuts, histograms: as in ``hookviz.record``.

    Raises:
        ImportError: Lightning is not installed.
        TypeError, ValueError: neither or both of ``steps`` and ``every`` are given, a step is not a whole number of at
            least 1, or ``hookviz.record`` refuses an option.

    >>> record = RecordSteps([3, 4])  # doctest: +SKIP
    >>> trainer = lightning.Trainer(callbacks=[record])  # doctest: +SKIP
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

    The page is ``trouble.html`` in ``trainer.log_dir``, in the folder ``hookviz``. After NaN or Inf the training goes
    on unobserved. Validation is not recorded.

    Args:
        keep: how many backward passes to keep.
        until: when to stop recording, as in ``hookviz.record``: ``"nan"``, or a function of the trace.
        statistics: as in ``hookviz.record``. ``"norm"`` costs the least, and misses no NaN or Inf.

    Raises:
        ImportError: Lightning is not installed.
        TypeError, ValueError: ``hookviz.record`` refuses an option.

    >>> recorder = FlightRecorder(keep=10)  # doctest: +SKIP
    >>> trainer = lightning.Trainer(callbacks=[recorder])  # doctest: +SKIP
    """

    def __init__(self, keep: int = 5, *, until: Until = "nan", statistics: StatisticsMode | None = "norm") -> None:
        super().__init__(FlightRecording(keep=keep, until=until, statistics=statistics))
