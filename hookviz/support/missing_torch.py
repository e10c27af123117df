"""Stand-ins for the public names that need torch, used if torch is not installed."""

from importlib.util import find_spec
from typing import Any, NoReturn

from hookviz.support.messages import N_, _

_TORCH_IS_MISSING = N_('hookviz.{name} needs PyTorch, which is not installed: install it with "pip install torch".')


def is_torch_installed() -> bool:
    """Whether torch is installed; it is not imported."""
    return find_spec("torch") is not None


def make_stand_in(name: str) -> type:
    """Make a stand-in for the public name ``name``: calling it raises an ImportError that says how to install torch.

    It is a class without instances, so that ``isinstance(x, hookviz.WhatIf)`` works without torch, too.

    >>> make_stand_in("record")()
    Traceback (most recent call last):
    ImportError: hookviz.record needs PyTorch, which is not installed: install it with "pip install torch".
    """

    def refuse(*_ignored: Any, **__: Any) -> NoReturn:
        raise ImportError(_(_TORCH_IS_MISSING).format(name=name), name="torch")

    return type(
        name, (), {"__new__": refuse, "__doc__": _(_TORCH_IS_MISSING).format(name=name), "__module__": "hookviz"}
    )
