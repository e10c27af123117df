"""The data of a recording: steps, values, hooks and the graph, as plain rows that can be saved and shown."""

from hookviz.trace.code_rows import LineRow, SourceRow
from hookviz.trace.hook_facts import FORWARD_HOOK_KINDS, HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS, HookKind
from hookviz.trace.hooks import Hook
from hookviz.trace.missing_rows import CUT_KINDS, CutKind, CutRow, MissingRow
from hookviz.trace.notes import Note
from hookviz.trace.rows import (
    EFFECTS,
    GRAD_MODES,
    KINDS,
    MISSING_REASONS,
    SUBJECTS,
    CallRow,
    Effect,
    HookPlace,
    HookRow,
    ModuleRow,
    NodeOutput,
    ReturnedPart,
    SavedRow,
    ScaleRow,
    StepKind,
    StepRow,
    TensorRow,
)
from hookviz.trace.steps import Part, Step, Steps
from hookviz.trace.trace import TraceData
from hookviz.trace.training_rows import ClipRow, GroupRow, MovedRow, NonfiniteRow, ParameterRow, UpdateRow
from hookviz.trace.unfired_rows import HookIdentity, UnfiredRow, identity_of
from hookviz.trace.values import Values

__all__ = [
    "CUT_KINDS",
    "EFFECTS",
    "FORWARD_HOOK_KINDS",
    "GRAD_MODES",
    "HOOK_KINDS",
    "KINDS",
    "MISSING_REASONS",
    "MODULE_HOOK_KINDS",
    "STEP_HOOK_KINDS",
    "SUBJECTS",
    "CallRow",
    "ClipRow",
    "CutKind",
    "CutRow",
    "Effect",
    "GroupRow",
    "Hook",
    "HookIdentity",
    "HookKind",
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
