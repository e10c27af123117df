"""The same pass with its hooks switched off and on."""

from hookviz.whatif.whatif import WhatIf, whatif

__all__ = ["WhatIf", "whatif"]
