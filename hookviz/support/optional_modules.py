"""Modules that hookviz can do without: an extra installs them, and a function that needs one says so."""

import importlib
from typing import Any


def load_optional(name: str, missing: str) -> Any:
    """Return a module that may not be installed.

    Raises:
        ImportError: it is not installed; ``missing`` is the message, which says how to install it.

    >>> load_optional("no_such_module", "Install it.")
    Traceback (most recent call last):
    ImportError: Install it.
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ImportError(missing, name=name) from None
