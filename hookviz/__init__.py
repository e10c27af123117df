"""See and debug PyTorch hooks: record a backward pass once, replay it anywhere.

Each public name is imported when it is first used, so that traces can be loaded and shown where torch is not installed.
(PYTEST_DONT_REWRITE: pytest need not look into this package, also where it is imported before pytest.)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hookviz.support.version import VERSION

if TYPE_CHECKING:
    from hookviz.analysis.findings import Finding
    from hookviz.api.comparison import Comparison
    from hookviz.api.trace import Trace, load
    from hookviz.hook_listing import hooks
    from hookviz.hook_listing.drawing import draw
    from hookviz.picture import Figure, render
    from hookviz.picture.plots.plot import Plot
    from hookviz.recorder import record
    from hookviz.static_checks import doctor
    from hookviz.support.messages import language
    from hookviz.trace import Hook, Step
    from hookviz.trace.notes import HookvizWarning
    from hookviz.trace.values import Value
    from hookviz.what_if import WhatIf, whatif

__all__ = [
    "Comparison",
    "Figure",
    "Finding",
    "Hook",
    "HookvizWarning",
    "Plot",
    "Step",
    "Trace",
    "Value",
    "WhatIf",
    "doctor",
    "draw",
    "hooks",
    "language",
    "load",
    "record",
    "render",
    "whatif",
]
__version__ = VERSION

_WITH_TORCH = {
    "WhatIf": "hookviz.what_if",
    "doctor": "hookviz.static_checks",
    "draw": "hookviz.hook_listing.drawing",
    "hooks": "hookviz.hook_listing",
    "record": "hookviz.recorder",
    "whatif": "hookviz.what_if",
}
_WITHOUT_TORCH = {
    "Comparison": "hookviz.api.comparison",
    "Figure": "hookviz.picture",
    "Finding": "hookviz.analysis.findings",
    "Hook": "hookviz.trace",
    "HookvizWarning": "hookviz.trace.notes",
    "Plot": "hookviz.picture.plots.plot",
    "Step": "hookviz.trace",
    "Trace": "hookviz.api.trace",
    "Value": "hookviz.trace.values",
    "language": "hookviz.support.messages",
    "load": "hookviz.api.trace",
    "render": "hookviz.picture",
}
"""Both: public name → the module that defines it."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, and keep it in the module's globals."""
    if name in _WITH_TORCH:
        from hookviz.support.missing_torch import is_torch_installed, make_stand_in

        module = _WITH_TORCH[name]
        value = getattr(import_module(module), name) if is_torch_installed() else make_stand_in(name)
    elif name in _WITHOUT_TORCH:
        value = getattr(import_module(_WITHOUT_TORCH[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Add ``%%hookviz`` to a notebook; IPython calls this at ``%load_ext hookviz``.

    Raises:
        ImportError: PyTorch is not installed.
    """
    import_module("hookviz.ipython_extension").load_extension(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take it away; IPython calls this at ``%unload_ext hookviz``."""
    import_module("hookviz.ipython_extension").unload_extension(shell)


def __dir__() -> list[str]:
    """List the public names, and not the parts of the package that were imported."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
