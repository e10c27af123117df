"""The rows about parameters that got no gradient, and about the ops that cut them off."""

from typing import Literal, NamedTuple, get_args

from hookviz.trace.columns import CutIndex, ModuleIndex, ProgramText, SourceLine, SourcePlace, StepIndex

CutKind = Literal["graph", "numbers", "frozen", "function", "no_grad", "inference", "checkpoint"]
"""How an op cuts: it returns a tensor without a graph, it returns plain numbers, it switches ``requires_grad`` off, or
it runs where torch records no graph: in the forward of an ``autograd.Function``, in ``torch.no_grad()``, in
``torch.inference_mode()``, or in the first forward of a reentrant checkpoint."""
CUT_KINDS: tuple[CutKind, ...] = get_args(CutKind)


class CutRow(NamedTuple):
    """An op that took a tensor with a graph, and whose result led to the root of a pass without it."""

    op: str
    """The name of the torch function, such as ``detach``, or of the attribute, such as ``data``."""
    kind: CutKind
    """How it cuts."""
    file: SourcePlace | None
    line: SourceLine | None
    text: ProgramText | None
    """The code of the call, such as ``h.detach()``; null if Python does not have it."""
    step: StepIndex | None
    """The last step before the op ran first; null if there is none, or if its pass was dropped."""


class MissingRow(NamedTuple):
    """A parameter that requires grad and belonged to the graph of no pass of the recording."""

    name: str
    """Its path in the model, such as ``net.layers.0.weight``; of a tensor without a module its variable."""
    owner: str
    """The name of the module that holds it; empty for a tensor without a module."""
    module: ModuleIndex | None
    """That module; None if it was not called."""
    cuts: tuple[CutIndex, ...] = ()
    """The ops that cut it off; empty if the recording did not follow ops, or found none."""
    frozen: bool = False
    """Whether it did not require grad at any call of its module, and does now."""
