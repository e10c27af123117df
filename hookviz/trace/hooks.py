"""A hook as a person is given it: whose it is, where it is kept, and where it was written."""

from dataclasses import dataclass

from hookviz.support.messages import say
from hookviz.support.source_code import Source


@dataclass(frozen=True)
class Hook:
    """A hook where it is kept: whose, in which dict, in which place, and where it was written."""

    on: str
    kind: str
    source_: Source
    kept_in: str
    place: int
    """Its place among the hooks of its dict, counted from 0, in the order in which they run."""
    total: int
    flags: tuple[str, ...] = ()
    """How it was registered: ``with_kwargs``, ``always_call``, ``global``."""

    @property
    def name(self) -> str:
        """``c_hook``; a lambda's text; a callable object's class."""
        return self.source_.name

    @property
    def label(self) -> str:
        """The name for a narrow place."""
        return self.source_.label

    @property
    def file(self) -> str | None:
        """Where it was written: ``In [4]`` or a relative path; None if Python does not know."""
        return self.source_.file

    @property
    def line(self) -> int | None:
        """The line in ``file``, counted from 1."""
        return self.source_.line

    @property
    def source(self) -> str | None:
        """Its source text, or None where there is none."""
        return self.source_.text

    @property
    def where(self) -> str:
        """File and line in words, empty where unknown."""
        return say("hook.where", file=self.file, line=self.line) if self.file else ""
