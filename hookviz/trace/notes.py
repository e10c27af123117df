"""Sentences as data: a key among the messages and what goes into it, so that a trace can be told in any language."""

from typing import Any, NamedTuple

from hookviz.support.messages import say

VERBATIM = "verbatim"
"""The key of a text that is told as it stands: what somebody else's object says of itself."""


class Note(NamedTuple):
    """A sentence that a trace holds.

    >>> Note.of("note.rank", rank=0, ranks=2).text
    'This was recorded on rank 0 of 2 (ranks count from 0). It does not show what the other ranks did.'
    """

    key: str
    arguments: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, key: str, **arguments: Any) -> "Note":
        """The sentence under ``key`` with these arguments in it."""
        return cls(key, tuple((name, str(value)) for name, value in arguments.items()))

    @classmethod
    def verbatim(cls, text: str) -> "Note":
        """A text that no message stands for."""
        return cls(VERBATIM, (("text", text),))

    @property
    def text(self) -> str:
        """The sentence, told; one that a newer hookviz has written, by its key."""
        try:
            return say(self.key, **dict(self.arguments))
        except (KeyError, ValueError, IndexError):
            return f"{self.key}: {dict(self.arguments)}"
