"""See and debug PyTorch hooks: record a backward pass once, replay it anywhere."""

from hookviz.api.loading import load
from hookviz.api.trace import Trace
from hookviz.course import Verdict, check
from hookviz.hook_listing import hooks
from hookviz.hook_listing.drawing import draw
from hookviz.picture import Figure, render
from hookviz.recorder import HookvizWarning, record
from hookviz.support.version import VERSION
from hookviz.trace import Hook, Step
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
__version__ = VERSION
