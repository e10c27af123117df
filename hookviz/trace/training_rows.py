"""The rows about training: the parameters of models and optimizers, and what each optimizer step was given."""

from typing import Annotated, NamedTuple

from hookviz.trace.columns import (
    CallIndex,
    ModuleIndex,
    OneOf,
    OptimizerIndex,
    ParameterIndex,
    Shows,
    StepIndex,
    ValueIndex,
)
from hookviz.trace.value_rows import Shape


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
