"""The rows of the tables of a trace: plain data that refer to each other by their indexes."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, get_args

from hookviz.support.source_code import Source
from hookviz.trace.columns import (
    CallIndex,
    CutIndex,
    HeldCell,
    HookIndex,
    HookKey,
    LongText,
    ModuleIndex,
    NodeIndex,
    OneOf,
    OptimizerIndex,
    PassIndex,
    PassOrNext,
    ProgramText,
    Setting,
    Shows,
    SourceIndex,
    SourceLine,
    SourcePlace,
    SourceText,
    StepCount,
    StepIndex,
    ValueIndex,
    ValueIndexes,
)
from hookviz.trace.hook_facts import HOOK_KINDS, HookKind
from hookviz.trace.notes import Note

StepKind = Literal[
    "call",  # a module is called, with its inputs
    "forward",  # the forward of a module has returned
    "seed",  # backward starts at a root
    "arrive",  # a gradient, the sum of all contributions, arrives at a node
    HookKind,
    "retain_grad",  # a non-leaf tensor stores its gradient in .grad
    "compute",  # the node computes the gradients of its inputs from those of its outputs
    "accumulate",  # AccumulateGrad writes the .grad of a leaf, or adds to it
    "unscale",  # a GradScaler has divided the gradients of an optimizer by its scale
    "rescale",  # a GradScaler has changed its scale
    "synchronise",  # DDP or FSDP has combined a gradient with those of the other ranks
    "optimizer_step",  # an optimizer has changed its parameters
    "returned",  # autograd.grad returns a gradient
    "aliased",  # a gradient changed because another one with the same storage was edited in place
    "unknown_hook",  # a gradient changed between two observers, through a hook that is not known
    "exception",  # an exception ended the pass
    "cut_short",  # checkpointing has recomputed all that it needs, and stops the forward
    "compiled",  # a region that torch.compile made: nothing inside it is observed
    "fast_path",  # a transformer layer ran as one kernel, without its inner modules
    "unobserved",  # a pass, or a part of one, that could not be observed
]
"""Every kind of step."""

KINDS: tuple[StepKind, ...] = get_args(StepKind)

KindOfHook = Annotated[str, OneOf(HOOK_KINDS)]
"""A ``HookKind``, as torch's names of hook dicts give it."""
HookFlag = Annotated[str, OneOf(("with_kwargs", "always_call", "global"))]
"""How a module hook was registered."""


Effect = Literal["kept", "edited", "replaced", "ran"]
"""What a hook did to its input; ``ran`` if that is not checked."""

Subject = Literal["gradient", "grad_output", "data", "settings"]
"""What a hook had its effect on: the gradient that it received (for a module hook: its grad_input), the grad_output of
a module, the numbers of the tensor itself, or the settings of an optimizer."""

Synchroniser = Literal["ddp", "fsdp"]
"""What combined a gradient with those of the other ranks."""

GradMode = Literal["grad", "no_grad", "inference", "checkpoint"]
"""The mode in which a module is called: with a graph, in ``torch.no_grad()``, in ``torch.inference_mode()``, or in the
first forward of a reentrant checkpoint, which records no graph either."""
GRAD_MODES: tuple[GradMode, ...] = get_args(GradMode)

Built = Literal["whole", "parts", "nothing"]
"""What torch compiled: a function as one graph, with all modules that it calls; several parts, between which Python
runs and may call modules; or nothing, because it had done so before."""

NodeOutput = tuple[int, int]
"""(node, output): a gradient arrives at an output of a node, and a tensor is identified by it."""


class TensorRow(NamedTuple):
    """A Python tensor that belongs to a node, as it was when a pass began; ``data`` and ``grad`` are value indexes."""

    pass_id: PassIndex
    node: NodeIndex
    output: int
    name: str
    leaf: bool
    retains_grad: bool
    data: ValueIndex | None
    grad: ValueIndex | None


MISSING_REASONS = (
    "hooks",  # saved-tensor hooks would have to unpack it
    "changed",  # it was changed in place, or freed
    "large",
    "many",  # there are too many saved tensors
    "hidden",  # unpacking it would run code of the user's
    "none",  # it does not exist
    "torch",  # this PyTorch is too old to tell
)
"""Why the trace does not have the numbers of a tensor that a node saved."""


BACKWARD_LOCATION = "backward"
"""The name of a ``SavedRow`` that holds the location in the user's code of the backward of a custom Function."""


class SavedRow(NamedTuple):
    """A tensor or setting that a node saved for its formula, as it was when a pass began."""

    pass_id: PassIndex
    node: NodeIndex
    name: str
    """The name of torch's attribute without ``_saved_``, or ``BACKWARD_LOCATION``."""
    value: ValueIndexes
    """The value of a tensor, a tuple for a list of tensors, else None; of a large tensor statistics, if any."""
    plain: Setting
    why: Annotated[str, OneOf(MISSING_REASONS)] | None = None


class ScaleRow(NamedTuple):
    """The factor by which a GradScaler multiplied the gradients of a pass."""

    pass_id: PassIndex
    scale: Annotated[float, Shows(("values",))]
    at: tuple[NodeIndex, ...]
    """The nodes that multiply: the gradients that they send are scaled."""
    others: tuple[NodeIndex, ...]
    """The nodes with unscaled gradients: those before the multiplication, and those reached on another path, too."""


class ModuleRow(NamedTuple):
    """A module that was called, or an optimizer that took a step."""

    name: str
    """The path of a module in the model, such as ``layers.0``."""
    kind: str
    """The name of its class."""
    forward: SourcePlace | None = None
    """File and line of a function that this module has in the place of the forward of its class, as a program puts it
    there; empty if they are not known, None if it has none."""
    drops: Annotated[float, Shows(("values",))] | None = None
    """The probability with which it drops numbers, when it was called first; None if it is no dropout of torch."""
    is_own: bool = False
    """Whether it is an optimizer of a class that is not one of torch."""


class CallRow(NamedTuple):
    """One call of a module."""

    module: ModuleIndex
    number: int
    """Counts the calls of this module in the recording, from 1; 0 for a call from before the recording."""
    parent: CallIndex | None
    """The call of the module whose forward made this call."""
    recomputed: bool
    """Whether checkpointing made it during a backward pass."""
    mode: GradMode = "grad"
    """Whether torch recorded a graph when the call began."""
    takes_grad: bool | None = None
    """Whether one of its inputs requires grad; None if it has no tensors as inputs."""
    gives_grad: bool | None = None
    """Whether one of the tensors that it returned requires grad; None if it returned none."""
    returned: str | None = None
    """The class of what it returned, if that is neither a tensor nor a tuple: there torch runs no backward hooks."""
    frozen: bool = False
    """Whether no input and no parameter of the module, nor of the modules in it, required grad when it returned."""
    path: str = ""
    """The path by which the module around it called it, if a model holds it at several; empty for its name."""
    nth: int = 0
    """Counts the calls by this path, from 1; 0 for a module with one path, where ``number`` says it."""
    transformed: bool = False
    """Whether a transform of ``torch.func`` ran it, such as ``vmap``, ``jvp`` or ``grad``: its tensors are wrapped, and
    what they say of ``requires_grad`` holds in the transform only."""
    fed_by: tuple[CallIndex, ...] = ()
    """The calls that returned the tensors it takes, if torch recorded no graph that says so."""
    evaluates: bool = False
    """Whether the module was in evaluation mode when the call began."""
    cut_from: tuple[CallIndex, ...] = ()
    """The calls that returned, with a graph, tensors whose memory it takes without one, as after ``detach()``.

    If the recording followed ops, also those from whose output other ops computed what it takes.
    """
    edits: tuple[ValueIndex, ...] = ()
    """The values of the tensors that it was given, edited in place and returned, as an inplace ReLU does."""
    cuts: tuple[tuple[CallIndex, CutIndex], ...] = ()
    """What cut off the output of one of these calls, if the recording followed ops."""
    forward_grad: bool | None = None
    """Whether what its forward returned required grad before the first forward hook; None if there was no hook."""


class ReturnedPart(NamedTuple):
    """What a module call returned: its whole result, or a part of it."""

    call: CallIndex
    label: str
    """``output`` for the whole result; ``output[0]``, ``output['logits']`` for a part."""


class HookRow(NamedTuple):
    """A registered hook. The owner of a tensor hook is an ``output`` of a ``node``, that of a node hook the ``node``.

    The owner of a module hook is ``module``, that of an optimizer hook ``optimizer``, unless it is a global hook of all
    modules or optimizers. What does not own the hook is None.
    """

    kind: KindOfHook
    node: NodeIndex | None
    output: int | None
    key: HookKey
    """The key of the hook in its dict."""
    name: str
    file: SourcePlace | None
    line: SourceLine | None
    text: SourceText | None
    return_line: SourceLine | None
    held: tuple[HeldCell, ...] = ()
    """Name, file, line, text, return_line and held are the fields of ``Source``."""
    module: ModuleIndex | None = None
    flags: tuple[HookFlag, ...] = ()
    """How a module hook was registered."""
    optimizer: OptimizerIndex | None = None
    registered_at: SourcePlace | None = None
    """File and line of the code that registered it, if it did so during the recording."""
    removed_at: SourcePlace | None = None
    """File and line of the code that removed it, if it did so during the recording."""
    until: StepCount | None = None
    """The number of steps when it was removed; None if it was not."""
    again: bool = False
    """Whether the same function or object was on its owner already when it was registered."""
    bound: bool = False
    """Whether it is a method or an object, which is copied with a module; a function is not."""
    registered_by: HookKey | None = None
    """The key of the module hook that registered it; None if none was running."""
    overwritten_by: HookKey | None = None
    """The key of another hook that was removed while this one stayed: its handle had taken the place of this one's."""
    overwritten_at: SourcePlace | None = None
    """File and line of the code at which its handle gave its place to another one."""
    spared: StepCount | None = None
    """The number of steps when that other hook was removed; None if none was."""
    spared_at: SourcePlace | None = None
    """File and line of the code that removed that other hook."""

    @property
    def source(self) -> Source:
        """Its function, which others may share that hold something else."""
        return Source(self.name, self.file, self.line, self.text, self.return_line)

    @property
    def dict(self) -> tuple[Any, ...]:
        """Identifies the dict that holds the hook."""
        return self.kind, self.node, self.output, self.module, self.optimizer, "global" in self.flags

    @property
    def owner_key(self) -> tuple[Any, ...]:
        """What it has in common with the other hooks of its kind on its owner."""
        return self.dict


def renumber(numbers: Mapping[int, int], index: int | None) -> int | None:
    """Return the new number of ``index``; None if it has none, and for None."""
    return None if index is None else numbers.get(index)


class HookPlace(NamedTuple):
    """The place of a hook in its dict when it ran."""

    position: int
    """Counted from 0."""
    total: int
    """The number of hooks in the dict."""


class StepRow(NamedTuple):
    """A step. Values, hooks, calls, optimizers and nodes are indexes; None means none."""

    pass_id: PassOrNext
    """The pass; of a forward without a backward pass, that which would have come next."""
    kind: StepKind
    node: NodeIndex | None = None
    output: int | None = None
    hook: HookIndex | None = None
    place: HookPlace | None = None
    """The place of the hook, if one ran."""
    before: ValueIndexes = None
    after: ValueIndexes = None
    effect: Effect | None = None
    """The effect of the hook, if one ran."""
    parts: tuple[tuple[NodeIndex | None, int, ValueIndex | None], ...] = ()
    """(source node, its slot, value) of each contribution to an arriving gradient; the seed has no node."""
    cause: StepIndex | None = None
    """The step whose in-place edit also changed this gradient."""
    call: CallIndex | None = None
    """The module call that the step is about."""
    optimizer: OptimizerIndex | None = None
    """The optimizer whose step this is about."""
    labels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The names of several values: those of ``before``, those of ``after``."""
    drew: bool = False
    """Whether the hook drew random numbers."""
    parameters: tuple[str, ...] = ()
    """The parameters of its module, by their names there, that the hook changed beside what it was given."""
    subject: Subject = "gradient"
    """What the hook had its effect on, and what ``before`` and ``after`` are values of."""
    found_inf: Annotated[bool, Shows(("values",))] = False
    """Whether a GradScaler has found Inf or NaN among the gradients."""
    synchroniser: Synchroniser | None = None
    """What combined the gradient with those of the other ranks."""
    ranks: int | None = None
    """The number of ranks whose gradients were combined, including this one."""
    region: str | None = None
    """The name of a region that torch.compile made."""
    built: Built | None = None
    """What torch compiled while that region ran; None if it is not known."""
    error: LongText | None = None
    """The type and message of the exception that ended the pass."""
    raised_at: SourcePlace | None = None
    """File and line of the user's code that raised it."""
    note: Note | None = None
    """Why a pass, or a part of one, was not observed."""

    @property
    def aside(self) -> tuple[str, ...]:
        """What the hook did beside what it was given; empty if nothing is known of that."""
        return (*(["random"] if self.drew else []), *self.parameters)

    @property
    def own_node(self) -> int:
        """The node of a step whose kind has one, such as ``compute``."""
        assert self.node is not None
        return self.node

    @property
    def own_output(self) -> int:
        """The output of a step whose kind has one, such as ``arrive``."""
        assert self.output is not None
        return self.output

    @property
    def own_call(self) -> int:
        """The module call of a step whose kind has one, such as ``forward``."""
        assert self.call is not None
        return self.call


class SourceRow(NamedTuple):
    """A text of the user's code; each is kept only once."""

    file: str | None
    """A path relative to the working directory, or ``In [4]`` for a notebook cell; None if it has no name."""
    line: int
    """The number of the first line of ``text``, counted from 1."""
    text: ProgramText
    whole: bool
    """Whether ``text`` is a whole file or notebook cell; of a long file it is one function, or some lines of it."""


class LineRow(NamedTuple):
    """A line of the user's code that starts the pass ``pass_id``, or calls a module: ``call``.

    With neither it ran a ``detach()`` or ``numpy()`` of a tensor; those are noted if the recording followed ops.
    """

    source: SourceIndex
    line: Annotated[int, Shows(("source", "values"))]
    pass_id: PassIndex | None = None
    call: CallIndex | None = None
    names: tuple[tuple[str, SourceIndex | None], ...] = ()
    """(name of a tensor of the pass, source of the notebook cell that assigned it last); None if that is unclear."""
