"""The rows about hooks that did not fire: when each was registered and removed, and what explains its silence."""

from typing import Any, Literal, NamedTuple, TypeAlias

from hookviz.support.source_code import Source
from hookviz.trace.columns import (
    CallIndex,
    HeldCell,
    HookKey,
    ModuleIndex,
    NodeIndex,
    SourceLine,
    SourcePlace,
    SourceText,
    StepCount,
)
from hookviz.trace.hook_facts import MODULE_HOOK_KINDS
from hookviz.trace.rows import HookFlag, HookRow, KindOfHook, ReturnedPart

CompiledPlace = Literal["itself", "inside"]
"""Whether a module ran compiled, or is inside one that did."""


class UnfiredRow(NamedTuple):
    """A hook that was registered at some time of a recording and did not fire."""

    kind: KindOfHook
    on: str
    """The name of its tensor, module or optimizer; empty if it is unknown."""
    key: HookKey
    """The key of the hook in its dict."""
    name: str
    file: SourcePlace | None
    line: SourceLine | None
    text: SourceText | None
    return_line: SourceLine | None
    held: tuple[HeldCell, ...] = ()
    """Name, file, line, text, return_line and held are the fields of ``Source``."""
    flags: tuple[HookFlag, ...] = ()
    since: StepCount | None = None
    """The number of steps that there were when it was registered; None if it was registered before the recording."""
    until: StepCount | None = None
    """The number of steps that there were when it was removed; None if it was still registered at the end."""
    removed_at: SourcePlace | None = None
    """File and line of the code that removed it."""
    registered_at: SourcePlace | None = None
    """File and line of the code that registered it, if it did so during the recording."""
    module: ModuleIndex | None = None
    """The module that owns it, if it was called."""
    node: NodeIndex | None = None
    """The node at which the gradient of its tensor arrives, if that node belonged to the graph of a pass."""
    call: CallIndex | None = None
    """The module call that made its tensor, if one did."""
    library: bool = False
    """Whether its function belongs to an installed package, not to the user's own code."""
    owner: str = ""
    """The class of the module or optimizer that owns it; of a parameter that of the module that holds it."""
    discarded: bool = False
    """Whether the module or parameter that owns it no longer existed when the next pass began."""
    has_forward: bool = True
    """Whether that module has a forward of its own, which a container such as ModuleList has not."""
    called: int = 0
    """How often that module was called."""
    inner: str = ""
    """The name of a module inside that module that was called."""
    stand_in: str = ""
    """The name of a module that torch made of the model of that module, and that ran with its parameters."""
    maker: str = ""
    """What made it: ``torch.jit.trace``, ``torch.jit.script``, ``torch.fx`` or ``torch.export``."""
    copy: ModuleIndex | None = None
    """The module for which a copy of the hook fired: a deep copy of that module."""
    bound: bool = False
    """Whether the hook is a method or an object, which is copied with the module; a function is not."""
    compiled: CompiledPlace | None = None
    """Whether that module ran compiled, or is inside one that did."""
    used: int = 0
    """In how many passes a parameter in that module belonged to the graph."""
    older: bool = False
    """Whether such a graph was partly made before the recording."""
    steps: int = 0
    """How many steps its optimizer took."""
    passes: int = 0
    """How many passes began while it was registered and its tensor existed."""
    in_graph: int = 0
    """To the graph of how many of them its tensor belonged."""
    partial: int = 0
    """How many of the passes of its tensor's graph, or of all for a module, were limited to some tensors:
    ``autograd.grad``, ``backward(inputs=...)``."""
    leaf: bool = False
    """Whether its tensor is a leaf."""
    frozen: bool = False
    """Whether its tensor did not require grad at any of these passes."""
    frozen_at_call: bool = False
    """Whether its tensor, a parameter, did not require grad when its module was called last before these passes."""
    stray: bool = False
    """Whether its tensor is a parameter, and no module that the recording knows holds it."""
    uncalled: bool = False
    """Whether its tensor is a parameter of a model of which no module was called; another one may have its name."""
    made_by: str = ""
    """The op that made its tensor; empty for a leaf."""
    made_from: str = ""
    """The leaf from which that op alone, or with others weight_norm, computed its tensor."""
    beside: bool = False
    """Whether its tensor was made from one of the graph of a pass, and that graph does not use the tensor itself."""
    returned: ReturnedPart | None = None
    """Of a tensor, the module call that returned it first, if one did."""
    dropped: bool = False
    """Whether its tensor, no parameter, and the hook with it were gone when the next pass began: nothing used it."""
    late: bool = False
    """Whether a pass that uses its tensor had begun when it was registered."""
    transformed: int = 0
    """How many of the passes a transform of ``torch.func`` began."""
    wrapped: bool = False
    """Whether its tensor was made in such a transform, and so belongs to a graph of the transform's own."""

    @property
    def source(self) -> Source:
        """Its function, which others may share that hold something else."""
        return Source(self.name, self.file, self.line, self.text, self.return_line)

    @property
    def owner_key(self) -> tuple[Any, ...]:
        """What it has in common with the other hooks of its kind on its owner."""
        return self.kind, self.on or self.key


HookIdentity: TypeAlias = tuple[Any, int | None]
"""Key and module of a hook: torch gives each hook a key of its own, but a copy of a module has the same ones."""


def identity_of(row: HookRow | UnfiredRow) -> HookIdentity:
    """Return key and module of the hook of a row."""
    module = row.module if row.kind in MODULE_HOOK_KINDS and "global" not in row.flags else None
    return row.key, module
