"""The tables of a trace: plain data that a file holds."""

from dataclasses import dataclass, field
from typing import Annotated

from hookviz.trace.columns import Between, CallIndex, HookIndex, NodeIndex, PassIndex, Shows
from hookviz.trace.compact_rows import CompactRows, StepRows, ValueRows
from hookviz.trace.histogram_rows import HistogramRow
from hookviz.trace.notes import Note
from hookviz.trace.rows import (
    CallRow,
    HookRow,
    LineRow,
    ModuleRow,
    ReturnedPart,
    SavedRow,
    ScaleRow,
    SourceRow,
    StepRow,
    TensorRow,
)
from hookviz.trace.training_rows import (
    ClipRow,
    CutRow,
    GroupRow,
    MissingRow,
    MovedRow,
    NonfiniteRow,
    ParameterRow,
    UpdateRow,
)
from hookviz.trace.unfired_rows import UnfiredRow
from hookviz.trace.value_rows import StatisticsMode, ValueRow


@dataclass(repr=False)
class TraceTables:
    """The tables of a trace. ``hookviz.trace.cells`` reads what their columns declare."""

    ops: list[str] = field(default_factory=list)
    edges: dict[tuple[NodeIndex, int], tuple[NodeIndex, int]] = field(default_factory=dict)
    """(node, slot) → (next node, its output): the edges along which gradients flow."""
    tensors: list[TensorRow] = field(default_factory=list)
    saved: list[SavedRow] = field(default_factory=list)
    rank: int | None = None
    """The rank of this process among ``ranks`` processes of ``torch.distributed``; None without it."""
    ranks: int | None = None
    """The number of these processes; None without ``torch.distributed``."""
    scales: list[ScaleRow] = field(default_factory=list)
    hook_rows: list[HookRow] = field(default_factory=list)
    values: list[ValueRow] = field(default_factory=ValueRows)
    rows: list[StepRow] = field(default_factory=StepRows)
    modules: list[ModuleRow] = field(default_factory=list)
    calls: list[CallRow] = field(default_factory=list)
    optimizers: list[ModuleRow] = field(default_factory=list)
    parameters: list[ParameterRow] = field(default_factory=list)
    """The parameters of the models and of the optimizers, if an optimizer took a step."""
    nonfinite: list[NonfiniteRow] = field(default_factory=list)
    """The parameters and buffers that put NaN into the output of a module."""
    updates: list[UpdateRow] = field(default_factory=list)
    """What each optimizer step was given, in order."""
    groups: list[GroupRow] = field(default_factory=list)
    """The groups of parameters that the optimizers were given during the recording."""
    clips: list[ClipRow] = field(default_factory=list)
    """The calls that clipped gradients, in order."""
    histograms: list[HistogramRow] = field(default_factory=list)
    """How gradients, outputs and weights are distributed, if ``record`` was asked for it."""
    moved: list[MovedRow] = field(default_factory=list)
    """The parameters that optimizers moved where their gradient was 0 because of a hook, or although frozen."""
    owners: dict[NodeIndex, CallIndex] = field(default_factory=dict)
    """Node → the innermost module call that made it."""
    returned: dict[tuple[NodeIndex, int], ReturnedPart] = field(default_factory=dict)
    """(node, output) → the first module call that returned this tensor."""
    outside: set[NodeIndex] = field(default_factory=set)
    """The nodes at the border of the recording: observed nodes lead to them, they themselves were not observed."""
    statistics: StatisticsMode | None = None
    """Which statistics were read of tensors with more than 64 numbers: all, or only the norm while it is finite.

    None for the rule: the norm of very large ones, and all statistics of the others.
    """
    remarks: list[Note] = field(default_factory=list)
    """What could not be observed, and why; ``notes`` has the sentences."""
    dropped: int = 0
    """The number of earlier passes, nested ones included, that ``record(keep=...)`` has dropped."""
    roots: list[list[tuple[NodeIndex, int]]] = field(default_factory=list)
    """For each pass, the (node, output) pairs at which it starts."""
    losses: dict[PassIndex, Annotated[float | None, Shows(("values",))]] = field(default_factory=dict)
    """Pass → the number at which it starts, if it starts at a single number that can be read; None if not finite."""
    pass_numbers: list[Annotated[int, Between(1, 2**53)]] = field(default_factory=list)
    """The number of each pass among all that ran during the recording, from 1."""
    hooked: list[list[HookIndex]] = field(default_factory=list)
    """For each pass, the hooks that were registered on its graph, as indexes of ``hook_rows``."""
    missing_rows: list[MissingRow] = field(default_factory=list)
    cut_rows: list[CutRow] = field(default_factory=list)
    """The parameters that belonged to the graph of no pass, and the ops that cut them off, if ops were followed."""
    unfired_rows: list[UnfiredRow] = field(default_factory=list)
    """The hooks that were registered at some time of the recording and did not fire, with what explains it."""
    sources: list[SourceRow] = field(default_factory=list)
    """The texts of the user's code that ``lines`` refer to."""
    lines: list[LineRow] = field(default_factory=list)
    """Where the user's code starts the passes and calls the modules, as far as that is known."""

    def close(self) -> None:
        """End the recording: nothing is appended any more. Its compact rows are expanded when they are first needed."""
        for rows in (self.rows, self.values):
            if isinstance(rows, CompactRows):
                rows.is_closed = True

    def expand(self) -> None:
        """Expand all compact rows, once the recording is over."""
        if isinstance(self.rows, CompactRows) and self.rows.is_closed:
            self.rows = list(self.rows)
        if isinstance(self.values, CompactRows) and self.values.is_closed:
            self.values = list(self.values)
