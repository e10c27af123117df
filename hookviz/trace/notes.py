"""Sentences as data: a key of the message table and its arguments, so that they can be shown in any language."""

from typing import Any, NamedTuple

from hookviz.support.messages import say
from hookviz.trace.columns import LongText

PART_NOTES = ("note.part", "note.part.forward")
"""Notes that only a part of a model was recorded."""

VERBATIM = "verbatim"
"""The key of a text that does not come from the message table, such as the repr of a user's object."""


class Note(NamedTuple):
    """A sentence that a trace holds.

    >>> Note.of("note.rank", rank=0, ranks=2).text
    'This was recorded on rank 0 of 2 (ranks count from 0). It does not show what the other ranks did.'
    """

    key: str
    arguments: tuple[tuple[str, LongText], ...] = ()

    @classmethod
    def of(cls, key: str, **arguments: Any) -> "Note":
        """Make a note from a key of the message table and its arguments."""
        return cls(key, tuple((name, str(value)) for name, value in arguments.items()))

    @classmethod
    def verbatim(cls, text: str) -> "Note":
        """Make a note from a text that is not in the message table."""
        return cls(VERBATIM, (("text", text),))

    @property
    def text(self) -> str:
        """The sentence; a note with an unknown key, from a newer hookviz, is shown as its key and arguments."""
        try:
            return say(self.key, **dict(self.arguments))
        except (KeyError, ValueError, IndexError):
            return f"{self.key}: {dict(self.arguments)}"
