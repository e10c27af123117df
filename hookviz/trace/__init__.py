"""The data of a recording: steps, values, hooks and the graph, as plain rows that can be saved and shown."""

from hookviz.trace.hook_facts import FORWARD_HOOK_KINDS, HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS
from hookviz.trace.hooks import Hook
from hookviz.trace.notes import Note
from hookviz.trace.rows import (
    GRAD_MODES,
    KINDS,
    CallRow,
    HookPlace,
    HookRow,
    LineRow,
    ModuleRow,
    NodeOutput,
    ReturnedPart,
    SavedRow,
    ScaleRow,
    SourceRow,
    StepKind,
    StepRow,
    TensorRow,
)
from hookviz.trace.steps import Part, Step, Steps
from hookviz.trace.trace import TraceData
from hookviz.trace.training_rows import (
    ClipRow,
    CutKind,
    CutRow,
    GroupRow,
    MissingRow,
    MovedRow,
    NonfiniteRow,
    ParameterRow,
    UpdateRow,
)
from hookviz.trace.unfired_rows import HookIdentity, UnfiredRow, identity_of
from hookviz.trace.values import Values

__all__ = [
    "FORWARD_HOOK_KINDS",
    "GRAD_MODES",
    "HOOK_KINDS",
    "KINDS",
    "MODULE_HOOK_KINDS",
    "STEP_HOOK_KINDS",
    "CallRow",
    "ClipRow",
    "CutKind",
    "CutRow",
    "GroupRow",
    "Hook",
    "HookIdentity",
    "HookPlace",
    "HookRow",
    "LineRow",
    "MissingRow",
    "ModuleRow",
    "MovedRow",
    "NodeOutput",
    "NonfiniteRow",
    "Note",
    "ParameterRow",
    "Part",
    "ReturnedPart",
    "SavedRow",
    "ScaleRow",
    "SourceRow",
    "Step",
    "StepKind",
    "StepRow",
    "Steps",
    "TensorRow",
    "TraceData",
    "UnfiredRow",
    "UpdateRow",
    "Values",
    "identity_of",
]
