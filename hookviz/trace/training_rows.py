"""The rows about parameters: what each optimizer step was given, and which got no gradient, with the ops that cut."""

from typing import Annotated, Literal, NamedTuple

from hookviz.trace.columns import (
    CallIndex,
    CutIndex,
    HookIndex,
    ModuleIndex,
    OneOf,
    OptimizerIndex,
    ParameterIndex,
    ProgramText,
    Shows,
    SourceLine,
    SourcePlace,
    StepCount,
    StepIndex,
    ValueIndex,
)
from hookviz.trace.value_rows import Shape

CutKind = Literal["graph", "numbers", "frozen", "function", "no_grad", "inference", "checkpoint"]
"""How an op cuts: it returns a tensor without a graph, it returns plain numbers, it switches ``requires_grad`` off, or
it runs where torch records no graph: in the forward of an ``autograd.Function``, in ``torch.no_grad()``, in
``torch.inference_mode()``, or in the first forward of a reentrant checkpoint."""


class ParameterRow(NamedTuple):
    """A parameter of a model that was called, or a tensor that an optimizer holds, at the last step of an optimizer."""

    names: tuple[str, ...]
    """Its names in the modules, such as ``net.0.weight``; more than one if modules share it, none if it is in none."""
    shape: Shape
    requires_grad: bool
    called: bool
    """Whether a module that holds it was called."""
    held: bool
    """Whether a module still holds it."""
    optimizers: tuple[OptimizerIndex, ...] = ()
    """The optimizers that held it when they took a step."""
    model: str = ""
    """The name of the model that it belongs to, such as ``net``; empty if it is in no module."""
    mark: str = ""
    """The attribute that was set to False as if it froze it, such as ``net.encoder.requires_grad``; most often empty.

    torch reads no such attribute of a module, and none of a parameter but ``requires_grad``.
    """


class NonfiniteRow(NamedTuple):
    """A parameter or buffer with NaN or Inf, found when a model returned NaN although its input had none."""

    call: CallIndex
    """The call of the model after which this was found."""
    module: ModuleIndex
    """The module that holds it."""
    name: str
    kind: Annotated[str, OneOf(("nan", "inf")), Shows(("values",))]


class UpdateRow(NamedTuple):
    """What an optimizer was given for one step."""

    step: StepIndex
    """The step of kind ``optimizer_step``."""
    rates: tuple[Annotated[float, Shows(("values",))] | None, ...]
    """The learning rate of each group of parameters; None if it is unknown."""
    without_grad: tuple[ParameterIndex, ...] = ()
    """The parameters whose ``.grad`` was None."""
    zero: Annotated[bool, Shows(("values",))] = False
    """Whether every gradient was exactly 0."""
    eval_norms: tuple[ModuleIndex, ...] = ()
    """The modules of batch norm in evaluation mode whose parameters the optimizer holds with a gradient."""
    regraded: tuple[tuple[ParameterIndex, ValueIndex], ...] = ()
    """The parameters whose ``.grad`` was changed since the last pass, as by clipping, and what it was at the step."""
    taken_at: SourcePlace | None = None
    """File and line of the user's code that took the step."""
    unscales: bool = False
    """Whether the optimizer itself divides the gradients by the scale of a GradScaler, as fused ones do."""
    moves: Annotated[tuple[tuple[ParameterIndex, float | None, int], ...], Shows(("values",))] = ()
    """How far the step moved the first of its parameters: each with the norm of the move, and the number of its group.

    The norm is None if it is not finite. There are none if the parameters are on a device, or large.
    """
    held: int = 0
    """How many parameters the optimizer holds."""
    taken_by: OptimizerIndex | None = None
    """The optimizer that took this step inside its own, as Lookahead does; None for most."""
    changed: tuple[ParameterIndex, ...] = ()
    """The parameters that something else changed since the step before: of those without a gradient at both steps, and
    of those that want one and are in no optimizer."""


class GroupRow(NamedTuple):
    """A group of parameters that an optimizer was given during the recording, when it was made or later."""

    optimizer: OptimizerIndex
    number: int
    """Its place among the groups of the optimizer, counted from 0."""
    rate: Annotated[float, Shows(("values",))] | None = None
    """Its learning rate then; None if it is unknown."""
    decay: Annotated[float, Shows(("values",))] | None = None
    """Its weight decay then; None if it is unknown, or if the optimizer has none."""
    made_at: SourcePlace | None = None
    """File and line of the user's code that made it."""


class ClipRow(NamedTuple):
    """A call that clips gradients, such as ``clip_grad_norm_``."""

    step: StepCount
    """The number of steps before it."""
    name: str
    """The name of the function."""
    limit: Annotated[float, Shows(("values",))]
    norm: Annotated[float, Shows(("values",))] | None = None
    """The norm that it found; None if it does not compute one, or if it is unknown."""
    called_at: SourcePlace | None = None
    """File and line of the user's code that called it."""
    given: int | None = None
    """How many tensors it was given; None if that is unknown."""
    with_grad: int | None = None
    """How many of these had a gradient; None if that is unknown."""


class MovedRow(NamedTuple):
    """A parameter that an optimizer moved where its gradient was 0 because of a hook, or although it was frozen."""

    step: StepIndex
    """The step of kind ``optimizer_step``."""
    parameter: ParameterIndex
    hook: HookIndex | None
    """The hook that set the gradient to 0; None if the parameter did not require a gradient, and had an older one."""
    axis: Annotated[str, OneOf(("rows", "columns", "numbers"))]
    parts: tuple[int, ...]
    """The first rows, columns or numbers that moved, counted from 0."""
    total: int
    """How many of these the parameter has."""
    decay: Annotated[float, Shows(("values",))] = 0.0
    """The weight decay, if it moves numbers that are not 0."""
    averages: Annotated[bool, Shows(("values",))] = False
    """Whether the optimizer kept averages of earlier gradients there that were not 0."""
    mixed: Annotated[bool, Shows(("values",))] = False
    """Whether some numbers of the gradient were 0 without the hook, so that some of these parts may be others."""


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
