"""The width of the terminal."""

import shutil

DEFAULT_WIDTH = 100
"""The width, in columns, where there is no terminal: in files, pipes and notebooks."""


def find_terminal_width() -> int:
    """Return the width of the terminal in columns; the variable ``COLUMNS`` of the environment overrides it."""
    return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
