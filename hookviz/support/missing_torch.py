"""What stands in the place of the functions that need torch, where it is not installed."""

from importlib.util import find_spec
from typing import Any, NoReturn

from hookviz.support.messages import say


def is_torch_installed() -> bool:
    """Whether Python finds torch; it is not imported."""
    return find_spec("torch") is not None


def stand_in(name: str) -> type:
    """What is ``hookviz.record``, say, where there is no torch: to call it raises an ImportError that says so.

    It is a class, as ``WhatIf`` is one: nothing is an instance of it.

    >>> stand_in("record")()
    Traceback (most recent call last):
    ImportError: hookviz.record needs PyTorch, which is not installed: install it with "pip install torch".
    """

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise ImportError(say("error.torch", name=name), name="torch")

    return type(name, (), {"__new__": refuse, "__doc__": say("error.torch", name=name), "__module__": "hookviz"})
