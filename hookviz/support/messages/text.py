"""Sentences that remember their key and arguments, so that the browser can show them in another language."""

from collections.abc import Mapping
from typing import Any

Message = str | list[Any]
"""A sentence as it is sent to the browser: a text that is the same in every language, or ``[key, arguments]``.

The arguments are a dict for the named placeholders of the text of ``key``, or a list of items which that text joins.
"""


class Text(str):
    """A sentence in the language of the message table, with the key and the arguments that it was made of.

    It is also an ordinary ``str``. Its arguments may be ``Text`` objects themselves.
    """

    __slots__ = ("arguments", "key")
    key: str
    """The key of its text in the message table."""
    arguments: Mapping[str, str] | tuple[str, ...]
    """The values of its named placeholders, or the items that were joined."""

    @classmethod
    def build(cls, sentence: str, key: str, arguments: Mapping[str, str] | tuple[str, ...]) -> "Text":
        """Return ``sentence`` as the text that ``key`` makes of ``arguments``."""
        text = cls(sentence)
        text.key, text.arguments = key, arguments
        return text


def translate(message: Message, texts: Mapping[str, str]) -> str:
    """Return ``message`` in the language of ``texts``; ``language.js`` does the same in the browser.

    >>> translate(["join.sum", ["8", "4"]], {"join.sum": " + "})
    '8 + 4'
    """
    if isinstance(message, str):
        return message
    key, arguments = message
    if isinstance(arguments, dict):
        return texts[key].format_map({name: translate(part, texts) for name, part in arguments.items()})
    return texts[key].join(translate(part, texts) for part in arguments)
