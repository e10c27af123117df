"""Finds the line of the user's own code that is running, for what a trace notes of it."""

from hookviz.autograd.variable_names import user_frames
from hookviz.support.source_code import shorten_filename
from hookviz.support.wrapped_functions import is_installed_file


def find_code_place() -> str | None:
    """Return file and line of the innermost frame of the user's own code; None if there is none."""
    frame = user_frames()[0]
    filename = frame.f_code.co_filename
    file = None if is_installed_file(filename) else shorten_filename(filename)
    return None if file is None else f"{file}:{frame.f_lineno}"
