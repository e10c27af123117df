"""See and debug PyTorch hooks: record a backward pass once, replay it anywhere."""

from hookviz.course import Verdict, check
from hookviz.hook_listing import hooks
from hookviz.picture import Figure, draw, render
from hookviz.recorder import HookvizWarning, record
from hookviz.storage.files import load
from hookviz.trace import Hook, Step, Trace
from hookviz.trace.values import Value
from hookviz.what_if import WhatIf, whatif

__all__ = [
    "Figure",
    "Hook",
    "HookvizWarning",
    "Step",
    "Trace",
    "Value",
    "Verdict",
    "WhatIf",
    "check",
    "draw",
    "hooks",
    "load",
    "record",
    "render",
    "whatif",
]
__version__ = "0.1.0"
