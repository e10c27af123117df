"""What happened in a pass: an ordered list of steps over a graph, plain data that can be saved and shown."""

from hookviz.trace.rows import (
    EFFECTS,
    FORWARD_HOOK_KINDS,
    HOOK_KINDS,
    KINDS,
    MISSING,
    MODULE_HOOK_KINDS,
    STEP_HOOK_KINDS,
    CallRow,
    HookRow,
    ModuleRow,
    Place,
    SavedRow,
    ScaleRow,
    StepRow,
    TensorRow,
)
from hookviz.trace.steps import Hook, Part, Step, Steps, Values
from hookviz.trace.trace import Trace

__all__ = [
    "EFFECTS",
    "FORWARD_HOOK_KINDS",
    "HOOK_KINDS",
    "KINDS",
    "MISSING",
    "MODULE_HOOK_KINDS",
    "STEP_HOOK_KINDS",
    "CallRow",
    "Hook",
    "HookRow",
    "ModuleRow",
    "Part",
    "Place",
    "SavedRow",
    "ScaleRow",
    "Step",
    "StepRow",
    "Steps",
    "TensorRow",
    "Trace",
    "Values",
]
