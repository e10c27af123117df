"""See and debug PyTorch hooks: record a backward pass once, replay it anywhere."""

from hookviz.files import load
from hookviz.hooks import hooks
from hookviz.picture import Figure, draw, render
from hookviz.quiz import Verdict, check
from hookviz.recorder import HookvizWarning, record
from hookviz.trace import Hook, Step, Trace
from hookviz.values import Value
from hookviz.whatif import WhatIf, whatif

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
