"""Sentences that remember what they were made of, so that a reader in another language can be shown them."""

from collections.abc import Mapping
from typing import Any

Message = str | list[Any]
"""A sentence as it travels to the browser: a text that reads the same in every language, or ``[key, arguments]``.

The arguments are a dict where the text under ``key`` has named places, and a list where that text stands between them.
"""


class Text(str):
    """A sentence in the language of the message table, with the key and the arguments it was made of.

    Wherever it is used as a ``str`` it is one. Arguments may be texts themselves.
    """

    __slots__ = ("arguments", "key")
    key: str
    """Where its text stands in the message table."""
    arguments: Mapping[str, str] | tuple[str, ...]
    """What stands in its named places; or, of a list, its items."""

    @classmethod
    def made(cls, written: str, key: str, arguments: Mapping[str, str] | tuple[str, ...]) -> "Text":
        """The sentence ``written``, which ``key`` makes of ``arguments``."""
        text = cls(written)
        text.key, text.arguments = key, arguments
        return text


def read(sent: Message, texts: Mapping[str, str]) -> str:
    """A message in the language of ``texts``, as the browser reads it.

    >>> read(["join.sum", ["8", "4"]], {"join.sum": " + "})
    '8 + 4'
    """
    if isinstance(sent, str):
        return sent
    key, arguments = sent
    if isinstance(arguments, dict):
        return texts[key].format_map({name: read(part, texts) for name, part in arguments.items()})
    return texts[key].join(read(part, texts) for part in arguments)
