"""The rows about hooks that did not fire: when each was registered and removed, and what explains its silence."""

from typing import Annotated, Any, NamedTuple, TypeAlias

from hookviz.trace.columns import HookKey, ModuleIndex, NodeIndex, OneOf, SourceLine, SourcePlace, SourceText, StepCount
from hookviz.trace.rows import MODULE_HOOK_KINDS, HookFlag, HookRow, KindOfHook

EVIDENCE = (
    "class",  # the class of the module or optimizer that owns the hook
    "called",  # the number of calls of the module
    "no_forward",  # the module is a container without a forward, such as ModuleList
    "inner",  # the name of an inner module that was called, though the module was not
    "caller",  # the name of the module around it that was called
    "caller_class",  # the class of that module
    "compiled",  # the module, or one around it, runs compiled
    "used",  # in how many passes a parameter of the module, which was not called, belonged to the graph
    "older",  # in how many passes it belonged to a graph of which a part was made before the recording
    "passes",  # the number of passes that began while the hook was registered
    "in_graph",  # in how many of them its tensor belonged to the graph
    "partial",  # in how many of these the pass was limited to some tensors: autograd.grad, backward(inputs=...)
    "leaf",  # its tensor is a leaf
    "parameter",  # its tensor is a parameter, but not of any module that the recording knows
    "frozen",  # its tensor does not require grad any more; no parameter of its module does
    "detour",  # the op that made its tensor from a tensor of the graph; the graph does not use the tensor itself
    "gone",  # its tensor, or the module that owns it, no longer exists
    "weight_norm",  # the parameter of which weight_norm computed its tensor
    "steps",  # the number of steps of the optimizer
)
"""Every name of an evidence."""

Evidence = tuple[tuple[Annotated[str, OneOf(EVIDENCE)], str], ...]
"""(name, value) of what the recorder saw of the owner of a hook."""


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
    mark: SourceLine | None
    """Name, file, line, text and mark are the fields of ``Source``."""
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
    evidence: Evidence = ()
    node: NodeIndex | None = None
    """The node at which the gradient of its tensor arrives, if that node belonged to the graph of a pass."""

    def evidence_of(self, name: str) -> str:
        """Return the value of an evidence; empty if there is none."""
        return dict(self.evidence).get(name, "")

    def count(self, name: str) -> int:
        """Return the value of an evidence that is a number; 0 if there is none."""
        return int(self.evidence_of(name) or 0)


HookIdentity: TypeAlias = tuple[Any, int | None]
"""Key and module of a hook: torch gives each hook a key of its own, but a copy of a module has the same ones."""


def identity_of(row: HookRow | UnfiredRow) -> HookIdentity:
    """Return key and module of the hook of a row."""
    module = row.module if row.kind in MODULE_HOOK_KINDS and "global" not in row.flags else None
    return row.key, module
