"""The same pass with its hooks switched off and on."""

from hookviz.what_if.experiment import WhatIf, whatif

__all__ = ["WhatIf", "whatif"]
