"""What all commands share: how they are added to the parser, how they run, and their exit statuses."""

import argparse
from collections.abc import Callable
from enum import IntEnum

AddParser = Callable[..., argparse.ArgumentParser]
"""The method of argparse that adds a command."""
Command = Callable[[argparse.Namespace], int]
"""A function that runs a command and returns its exit status."""


class ExitStatus(IntEnum):
    """What a command returns to the shell."""

    GOOD = 0
    FOUND = 1
    """``findings`` lists an error or a warning, ``check`` a difference."""
    FAILED = 2
    """The arguments are wrong, or a file cannot be read or written; also the status of ``argparse``."""
