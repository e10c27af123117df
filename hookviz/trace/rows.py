"""What a trace keeps: rows of plain data that point to each other by their numbers."""

from typing import Any, Literal, NamedTuple, get_args

from hookviz.trace.notes import Note

FORWARD_HOOK_KINDS = ("forward_pre_hook", "forward_hook")
BACKWARD_HOOK_KINDS = ("full_backward_pre_hook", "full_backward_hook", "backward_hook")
MODULE_HOOK_KINDS = (*FORWARD_HOOK_KINDS, *BACKWARD_HOOK_KINDS)
"""The hooks of modules; ``backward_hook`` is the legacy one, which torch keeps but advises against."""

STEP_HOOK_KINDS = ("step_pre_hook", "step_post_hook")
"""The hooks of optimizers, around each step."""

HOOK_KINDS = (
    "tensor_hook",
    "multi_grad_hook",
    "node_pre_hook",
    "node_post_hook",
    "post_accumulate_hook",
    *MODULE_HOOK_KINDS,
    *STEP_HOOK_KINDS,
)
"""The kinds of step in which a function of the user's ran."""

KINDS = (
    "call",  # a module is called, with its inputs
    "forward",  # the forward of a module has returned
    "seed",  # backward starts at a root
    "arrive",  # a gradient, the sum of all contributions, arrives at a node
    *HOOK_KINDS,
    "retain_grad",  # a tensor that is no leaf stores its gradient in .grad
    "compute",  # the node turns the gradient of its output into those of its inputs
    "accumulate",  # AccumulateGrad writes a leaf's .grad, or adds to it
    "unscale",  # a GradScaler has divided the gradients of an optimizer by its scale
    "rescale",  # a GradScaler has another scale from now on
    "synchronise",  # DDP or FSDP has joined a gradient with those of the other ranks
    "optimizer_step",  # an optimizer has changed its parameters
    "returned",  # autograd.grad gives a gradient back
    "aliased",  # a gradient changed because another one, edited in place, shares its storage
    "unknown_hook",  # a gradient changed on its way and nobody knows by which hook
    "exception",  # the pass ended early
    "cut_short",  # checkpointing has computed again all that it needs, and leaves the rest out
    "compiled",  # a region that torch.compile made: nothing inside is seen
    "fast_path",  # a transformer layer ran as one kernel, without its inner modules
    "unobserved",  # a pass, or a part of one, of which nothing is known
)
"""Every kind of step."""


Effect = Literal["kept", "edited", "replaced", "ran"]
"""What a hook did to what it was given; ``ran`` where that is not looked at."""
EFFECTS: tuple[Effect, ...] = get_args(Effect)

Subject = Literal["gradient", "grad_output", "data", "settings"]
"""What a hook's effect is on: the gradient that it was given (a module's hook: its grad_input), the grad_output beside
it, a tensor's own numbers, or the settings of an optimizer."""
SUBJECTS: tuple[Subject, ...] = get_args(Subject)

Synchroniser = Literal["ddp", "hook", "fsdp", "factor"]
"""Who has joined a gradient with those of the other ranks: DDP, DDP with a communication hook of one's own, FSDP, or
FSDP that divides by something else than the number of ranks."""

NodeOutput = tuple[int, int]
"""(node's number, which of its outputs): where a gradient arrives, and what a tensor's name belongs to."""


class TensorRow(NamedTuple):
    """A Python tensor as it was when a pass began."""

    pass_id: int
    node: int
    output: int
    name: str
    leaf: bool
    retains_grad: bool
    data: int | None
    grad: int | None


MISSING_REASONS = (None, "hooks", "changed", "large", "many", "none")
"""Why nothing is known of what a node saved."""


BACKWARD_LOCATION = "backward"
"""What is called so among the things that a node saved is the place in the user's code of a Function's backward."""


class SavedRow(NamedTuple):
    """What a node saved for its formula, as it was when a pass began."""

    pass_id: int
    node: int
    name: str
    """Torch's name for it, without ``_saved_``; ``BACKWARD`` for where a Function of one's own has its backward."""
    value: Any
    """The number of the value of a tensor; several for a list of tensors; else None."""
    plain: Any
    """A setting: a number, a text, None, or a tuple of such."""
    why: str | None = None
    """One of ``MISSING``: a hook would have to unpack it, it was changed in place or freed, is large, one too many, or
    not there."""


class ScaleRow(NamedTuple):
    """What a GradScaler has multiplied the gradients of a pass by."""

    pass_id: int
    scale: float
    at: tuple[int, ...]
    """The nodes that multiply: what they send is scaled."""
    others: tuple[int, ...]
    """The nodes whose gradients are not scaled by this: those before, and those reached in another way, too."""


class ModuleRow(NamedTuple):
    """A module that was called, or an optimizer that took a step."""

    name: str
    """Of a module: its path in the model, such as ``layers.0``."""
    kind: str
    """The name of its class."""


class CallRow(NamedTuple):
    """One call of a module."""

    module: int
    number: int
    """The first call of this module in the recording is 1."""
    parent: int | None
    """The call in whose forward this one was made."""
    recomputed: bool
    """Whether it was made during a backward pass, as checkpointing does."""


class HookRow(NamedTuple):
    """A hook in the place where it is kept; ``output`` is -1 for a hook of the node itself.

    A module's hook has no node, and ``module`` says whose it is: -1 for no module, as for a global hook of all modules.
    For an optimizer's hook it says in the same way whose it is among the optimizers.
    """

    kind: str
    node: int
    output: int
    key: int
    name: str
    file: str | None
    line: int | None
    text: str | None
    mark: int | None
    module: int = -1
    flags: tuple[str, ...] = ()
    """How a module's hook was registered: ``with_kwargs``, ``always_call``, ``global``."""

    @property
    def dict(self) -> tuple[str, int, int, int, bool]:
        """Tells the dict in which it is kept from all others."""
        return self.kind, self.node, self.output, self.module, "global" in self.flags


class HookPlace(NamedTuple):
    """Where a hook stood in its dict when it ran."""

    position: int
    """The first hook of a dict is in position 0."""
    total: int
    """How many hooks the dict held."""


class StepRow(NamedTuple):
    """A step, its values and hook as indexes."""

    pass_id: int
    kind: str
    node: int = -1
    output: int = -1
    hook: int | None = None
    place: HookPlace | None = None
    """Of a step in which a hook ran."""
    before: Any = None
    after: Any = None
    effect: Effect | None = None
    """None where no hook ran."""
    parts: tuple[tuple[int, int, int | None], ...] = ()
    cause: int | None = None
    """The step whose in-place edit changed this gradient too."""
    call: int = -1
    """The module call that the step is about."""
    optimizer: int = -1
    """The optimizer whose step this is about."""
    labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """What each of several values is called: those before, those after."""
    subject: Subject = "gradient"
    """What the hook's effect is on, and before and after are of."""
    in_backward: bool = False
    """Whether a module is called while a pass runs."""
    found_inf: bool = False
    """Whether a GradScaler has found Inf or NaN among the gradients."""
    synchroniser: Synchroniser | None = None
    """Who has joined the gradient with those of the other ranks."""
    ranks: int | None = None
    """With how many ranks' gradients it was joined, this one included."""
    region: str | None = None
    """What a region that torch.compile made is called."""
    error: str | None = None
    """The type and message of the exception that ended the pass."""
    note: Note | None = None
    """Why a pass, or a part of one, was not observed."""
