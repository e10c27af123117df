"""The public function ``record``, the block that it returns, and how a recording begins.

Any use of the block but in a ``with`` statement raises or warns.
"""

import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import torch

from hookviz.api.trace import Trace
from hookviz.autograd import variable_names
from hookviz.autograd.torch_internals import require_internals
from hookviz.recorder.open_recordings import own_recording
from hookviz.recorder.options import RecordOptions, Until
from hookviz.recorder.recording import Recording
from hookviz.recorder.torch_patches import start_observing, stop_observing
from hookviz.support.interpreter import state_lock
from hookviz.support.messages import N_, _
from hookviz.trace.notes import HookvizWarning
from hookviz.trace.value_rows import StatisticsMode

_UNUSED_BLOCK = N_(
    "Nothing is recorded: record() only records in a with block. Write: with hv.record(net) as "
    "trace: and call the model in the block."
)


class RecordBlock:
    """A recording that begins when a ``with`` statement enters it. It can be entered once.

    It ends at the latest when the block is freed: entered by hand, it may never be left, and Ctrl-C may come before the
    first line of ``__exit__``.
    """

    def __init__(self, options: RecordOptions) -> None:
        self._options = options
        self._finalizer: weakref.finalize[..., Any] | None = None
        self._recording: Recording | None = None
        self._entered = False
        frame = variable_names.caller_frame()
        location = frame.f_code.co_filename, frame.f_lineno
        self._unused = weakref.finalize(self, _warn_unused, *location)

    def __enter__(self) -> Trace:
        self._unused.detach()
        if self._entered:
            raise RuntimeError(
                _("This recording has been used: call record() again, as in: with hv.record(net) as trace:")
            )
        self._entered = True
        recording = new_recording(self._options)
        self._recording = recording
        self._finalizer = weakref.finalize(self, state_lock.call, stop_observing, recording)
        self._finalizer.atexit = False
        try:
            start_observing(recording)
        except BaseException:
            self.end()
            raise
        return Trace(recording.trace)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the recording. An exception that was raised in the block propagates, after ``on_trouble`` is written."""
        try:
            self.end(error)
        except KeyboardInterrupt:  # it may come before the first line of ``end``
            self.end()
            raise
        self.write_exception(error)

    def end(self, error: BaseException | None = None) -> None:
        """End the recording if it has begun, because of ``error`` if there was one. Calling it twice is safe."""
        finalizer = self._finalizer
        pending = None if finalizer is None else finalizer.peek()
        if finalizer is not None and pending is not None:
            if error is not None and self._recording is not None:
                self._recording.note_exception(error)
            _ignored, finish, arguments, _ignored = pending
            finish(*arguments)
            finalizer.detach()  # after ``stop_observing``: if that is interrupted, the end of the block repeats it

    def write_exception(self, error: BaseException | None) -> None:
        """Write the file that ``record(on_trouble=...)`` asks for, if ``error`` left the block."""
        recording, self._recording = self._recording, None
        if error is not None and recording is not None:
            recording.write_exception(error)

    def __repr__(self) -> str:
        return (
            _(
                "This recording has started or ended. Its trace is the variable after 'as': with "
                "hv.record(net) as trace:"
            )
            if self._entered
            else _(_UNUSED_BLOCK)
        )


def _warn_unused(file: str, line: int) -> None:
    """Warn that a block was never entered. ``weakref.finalize`` calls this, also when a script ends."""
    warnings.warn_explicit(_(_UNUSED_BLOCK), HookvizWarning, file, line)


def record(
    *models: torch.nn.Module,
    names: Mapping[str, torch.Tensor] | None = None,
    every: int = 1,
    keep: int | None = None,
    until: Until | None = None,
    on_trouble: str | Path | None = None,
    statistics: StatisticsMode | None = None,
    cuts: bool = False,
    histograms: bool = False,
    compiled: Literal["eager"] | None = None,
) -> RecordBlock:
    """Record every module call and every backward pass in the ``with`` block, without changing them.

    hookviz follows the calls of the modules in ``models`` (of all modules if you give none), ``Tensor.backward``,
    ``torch.autograd.backward`` and ``torch.autograd.grad`` in the calling thread. Modules are named by their paths in
    the model, parameters by their modules, and other tensors by your variables.

    A pass is one ``backward`` or ``grad``, including the passes that hooks or checkpointing start inside it.

    A trace takes about 1 KB of memory per step. Once it holds 20,000 steps of 20 or more passes or model calls, hookviz
    issues one ``HookvizWarning`` with advice. If warnings are errors, the pass goes on, and the trace's ``notes`` hold
    the text.

    Args:
        models: the models to follow. A part such as ``model.layers[3]`` works, too: only its calls are followed and, of
            each backward pass, the nodes that they made; the rest runs unobserved, and the trace says so.
        names: name → tensor; these names take precedence over the names of variables.
        every: 100 records the first pass and every hundredth after it, with the forward before each (all calls since
            the previous pass) and the optimizer step after it. To watch a training that runs for hours, use ``every``.
            If you must not miss a pass that goes wrong, use ``statistics="norm"`` with ``keep``, which observes every
            pass.
        keep: how many passes to keep. In a long training loop the oldest passes are dropped. The others keep their
            numbers on screen and in ``step.pass_number``; ``step.pass_id`` counts from 0 again. (While the block runs,
            the trace may hold up to twice as many.)
        until: when to stop recording, checked after each recorded pass. Afterwards the program runs on unobserved, and
            a note in the trace says after which pass it stopped and why. ``"nan"`` stops after a pass with NaN or Inf
            in the output of a followed module, in the tensor where the pass began if your code has it in a variable,
            in what the pass left in the ``.grad`` of a leaf, or in what ``torch.autograd.grad`` returned. It reads
            only values that the trace holds in any case, for several gradients on a device after one transfer. With a
            GradScaler, infinite gradients are normal in the first passes. A function gets the trace and returns
            whether to stop; hookviz reports an exception in it, and the recording goes on.
        on_trouble: a file that hookviz writes when ``until`` stops the recording, or else when an exception (other than
            Ctrl-C or ``SystemExit``) leaves the block: a page if the name ends in ``.html``, the saved trace if it
            ends in ``.json``. It holds what was recorded up to then. One line on stderr says so. The exception itself
            propagates, and if the file cannot be written, a warning says why.
        statistics: None for the rule: tensors of up to 64 numbers are kept whole; of larger ones, minimum, maximum,
            mean, norm, and the counts of NaN, Inf and zeros are read; of those with more than 1,048,576 numbers, and of
            all once the trace holds 50,000 values, only the norm, which also shows whether there is a NaN or Inf.
            ``"all"`` and ``"norm"`` read all statistics, or only the norm, of every tensor of more than 64 numbers.
            Where only the norm is read, the other statistics are None, and a tensor with NaN or Inf is read in full,
            except on a device, where hookviz knows which of the two it holds, but not how many. This costs about half
            as much on models, and ``trace.findings.values`` finds the same, except why a module turns a large input
            into NaN or Inf. It misses a hook that changes numbers past torch (through ``.data``, numpy) and keeps the
            norm.
        cuts: True follows each op, and finds the line that cuts a parameter off from the loss, also between module
            calls and outside of them: ``trace.findings`` then have the op and its line. For a debugging run:
            hookviz runs a function at each op of the calling thread, by a ``TorchFunctionMode``. Values stay as they
            are, and so do hooks and exceptions. What changes: PyTorch's fast path for transformers in evaluation is
            off, so that their numbers may differ in the last bits; a warning of PyTorch may name a line of hookviz
            instead of yours; the stack in an op, and in ``loss.backward()``, is a few calls deeper, and a traceback may
            show PyTorch's ``handle_torch_function``; a method of ``Tensor`` that other code has replaced may run twice
            in one call. Ops in compiled or scripted code, in hooks of a backward pass and in other threads are not
            followed, nor numbers that Python or numpy computes with before they become a tensor again.
        histograms: True also reads how the numbers are distributed of each gradient that arrives at a leaf, of the
            leaf itself, and of the first tensor that each module returns, for ``trace.plot``. Of a tensor with more
            than 2,048 numbers at most so many are read, evenly spaced. They are counted with their sign in four bins
            from each power of 2 to the next. A tensor costs about 40 µs and 1 KB: less than 15 % of a recording
            without, or half of it if all layers are small (``benchmarks/README.md``). Integers and complex numbers are
            left out, and so are the gradients that ``torch.autograd.grad`` returns. hookviz waits for a device once
            more after each pass, and once after each step of an optimizer.
        compiled: ``"eager"`` runs what ``torch.compile`` made eagerly while the block is open, in all threads, so that
            the modules and hooks in it are observed like others. A hook may then run that the compiled program leaves
            out, and numbers may differ in the last bits: a note of the trace says so. With None, compiled code runs as
            it is, as one step, and hookviz does not see inside.

    Returns:
        A block for a ``with`` statement. The name after ``as`` is the trace, which fills as calls and passes run.

    Raises:
        RuntimeError: a recording is already open in this thread.
        TypeError, ValueError: a model is not a module, ``names`` is not a dict of name → tensor, ``keep`` or ``every``
            is not a number of passes, ``until`` is neither ``"nan"`` nor a function, ``on_trouble`` is not a path or
            has another suffix, ``statistics`` is not one of the two words or None, ``cuts`` or ``histograms`` is
            not a boolean, or ``compiled`` is neither ``"eager"`` nor None.
        FileNotFoundError: the folder of ``on_trouble`` does not exist.

    >>> import torch, hookviz as hv
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> with hv.record() as trace:
    ...     (x * x).backward()
    >>> [step.sentence for step in trace.firings]
    ['λ grad * 10 on x replaced the gradient: 6 → 60.']
    """
    options = RecordOptions(
        models=models,
        names=names,
        every=every,
        keep=keep,
        until=until,
        on_trouble=on_trouble,
        statistics=statistics,
        cuts=cuts,
        histograms=histograms,
        compiled=compiled,
    )
    return RecordBlock(options)


def new_recording(options: RecordOptions) -> Recording:
    """Create a recording that has not begun.

    Raises:
        RuntimeError, TypeError, ValueError, FileNotFoundError: as ``record`` does.
    """
    require_internals()
    outer = own_recording()
    if outer is not None and outer.gives_way:
        outer.has_given_way = True
        stop_observing(outer)
    elif outer is not None:
        raise RuntimeError(
            _(
                "record() is already observing this thread: one recording can hold several passes. Leave the "
                "outer with block first, or remove the inner one."
            )
        )
    options.check()
    return Recording(options)
