"""What happened in a pass: an ordered list of steps over a graph, plain data that can be saved and shown."""

from hookviz.trace.rows import HOOK_KINDS, KINDS, HookRow, Place, StepRow, TensorRow
from hookviz.trace.steps import Hook, Part, Step, Steps, Values
from hookviz.trace.trace import Trace

__all__ = [
    "HOOK_KINDS",
    "KINDS",
    "Hook",
    "HookRow",
    "Part",
    "Place",
    "Step",
    "StepRow",
    "Steps",
    "TensorRow",
    "Trace",
    "Values",
]
