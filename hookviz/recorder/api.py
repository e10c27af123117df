"""What a person calls to record."""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch.backends import mha

from hookviz.api.trace import Trace
from hookviz.autograd import graph
from hookviz.autograd.tensor_statistics import validate_statistics
from hookviz.autograd.torch_internals import require_internals
from hookviz.recorder import torch_patches
from hookviz.recorder.block import RecordBlock
from hookviz.recorder.module_filter import checked_only
from hookviz.recorder.pass_sampler import checked_every
from hookviz.recorder.recording import Recording
from hookviz.recorder.retention import checked_keep
from hookviz.support.interpreter import SharedSwitch
from hookviz.support.interrupts import Uninterrupted
from hookviz.support.messages import say
from hookviz.support.printable import kind_of
from hookviz.trace.value_rows import Which


def record(
    *models: torch.nn.Module,
    names: Mapping[str, torch.Tensor] | None = None,
    only: str | Sequence[str] | None = None,
    every: int = 1,
    keep: int | None = None,
    statistics: Which = "all",
    fastpath: bool = True,
) -> RecordBlock:
    """Observe every module call and every backward pass in the ``with`` block, and change nothing.

    Seen are the calls of the modules in ``models`` in any thread, or of all modules where none is given, and
    ``Tensor.backward``, ``torch.autograd.backward`` and ``torch.autograd.grad`` in the calling thread.
    Modules are called after their paths in the model, parameters after their modules, other tensors after the caller's
    variables.

    A pass is one ``backward`` or ``grad``, with those that hooks or checkpointing begin in it.

    A trace takes about 1 KB of memory a step. Once it holds 20,000 steps of 20 or more passes or calls of models, a
    ``HookvizWarning`` says so, once, and what to do: ``keep`` and ``every`` for passes, a shorter block or ``only`` for
    calls without one. If warnings are errors, the pass goes on all the same, and the trace's ``notes`` say it.

    Args:
        models: the models to follow.
        names: name → tensor, which overrules the names of variables.
        only: which modules of the models to follow, by their names in ``named_modules()``: a pattern such as
            ``"layers.3.*"``, or several, in which ``*`` stands for any text, dots included. Only their calls are
            followed, and of a pass only the nodes that they made; the rest runs unobserved, which the trace says.
        every: 100 records the first pass and every hundredth after it, with the forward before each (whatever is
            called after the pass before it) and the optimizer's step behind it. Each thread counts its own. To watch
            a training that runs for hours take ``every`` with ``statistics="all"``; where a pass that goes wrong must
            not be missed, take ``statistics="norm"`` with ``keep`` instead, which sees every pass.
        keep: how many passes to keep: in a long training loop the oldest are let go of, and what is left is counted
            from 0 (up to twice as many may be there while the block runs).
        statistics: what to read of a tensor with more than 64 numbers (of fewer, each is kept). ``"all"``: minimum,
            maximum, mean, norm, and how many are NaN, infinite and zero. ``"norm"``: the norm alone, of which it
            follows whether any is NaN or infinite; a tensor that holds such is read in full, but on a device, where
            its kind is known and not the count. The rest is None. That costs about half as much on models, and
            ``troubles`` finds the same, save for why a module makes NaN or Inf of a large input. What it cannot tell:
            a hook that changes numbers past torch (through ``.data``, numpy) and leaves their norm as it was.
        fastpath: False switches off PyTorch's fast path for transformers in the block, so that their inner modules
            and hooks run; this changes what they return in its last digits.

    Returns:
        A block for a ``with`` statement, whose ``as`` names the trace, filled as calls and passes run.

    Raises:
        RuntimeError: a recording is already open in this thread.
        TypeError, ValueError: a model is no module, ``names`` is not a dict of name → tensor, ``keep`` or ``every`` is
            not a number of passes, ``statistics`` is another word, or a pattern in ``only`` matches no module; the
            message lists names like it.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> with record() as trace:
    ...     (x * x).backward()
    >>> [step.sentence for step in trace.firings]
    ['λ grad * 10 on x replaced the gradient: 6 → 60.']
    """
    make = partial(new_recording, *models, names=names, only=only, every=every, keep=keep, statistics=statistics)
    return RecordBlock(make, partial(begin, fastpath=fastpath), end)


def new_recording(
    *models: torch.nn.Module,
    names: Mapping[str, torch.Tensor] | None = None,
    only: str | Sequence[str] | None = None,
    every: int = 1,
    keep: int | None = None,
    statistics: Which = "all",
) -> Recording:
    """A recording that has not begun.

    Raises:
        RuntimeError, TypeError, ValueError: as ``record`` does.
    """
    require_internals()
    begun = torch_patches.begun_here()
    if begun is not None and begun.within is not None and begun.within() is None:
        end(begun)  # its block is gone, and a second interrupt kept it from being ended
        begun = None
    if begun is not None:
        raise RuntimeError(say("error.nested"))
    for model in models:
        if not isinstance(model, torch.nn.Module):
            raise TypeError(say("error.record.type", kind=kind_of(model)))
    return Recording(
        Trace(statistics=validate_statistics(statistics)),
        graph.validate_names(names),
        models,
        checked_keep(keep),
        checked_only(only, models),
        checked_every(every),
    )


def begin(recording: Recording, *, fastpath: bool = True) -> None:
    """Let ``recording`` see what its thread does from now on; what is raised here, or interrupts, must ``end`` it."""
    with Uninterrupted():
        torch_patches.start(recording)
        if not fastpath:
            _slow.take(recording)


def end(recording: Recording) -> None:
    """All is as it was before the recording; to do it twice does no harm."""
    with Uninterrupted():
        _slow.leave(recording)
        torch_patches.stop(recording)
        recording.close()


def _stop_fastpath() -> bool:
    enabled: bool = mha.get_fastpath_enabled()
    mha.set_fastpath_enabled(False)
    return enabled


_slow = SharedSwitch(_stop_fastpath, mha.set_fastpath_enabled)
