"""The rows about the user's code: its text, and the lines in it that start a pass or call a module."""

from typing import Annotated, NamedTuple

from hookviz.trace.columns import CallIndex, PassIndex, ProgramText, Shows, SourceIndex


class SourceRow(NamedTuple):
    """A text of the user's code; each is kept only once."""

    file: str | None
    """A path relative to the working directory, or ``In [4]`` for a notebook cell; None if it has no name."""
    line: int
    """The number of the first line of ``text``, counted from 1."""
    text: ProgramText
    whole: bool
    """Whether ``text`` is a whole file or notebook cell; of a long file it is one function, or some lines of it."""


class LineRow(NamedTuple):
    """A line of the user's code that starts the pass ``pass_id``, or calls a module: ``call``."""

    source: SourceIndex
    line: Annotated[int, Shows(("source", "values"))]
    pass_id: PassIndex | None = None
    call: CallIndex | None = None
    names: tuple[tuple[str, SourceIndex | None], ...] = ()
    """(name of a tensor of the pass, source of the notebook cell that assigned it last); None if that is unclear."""
