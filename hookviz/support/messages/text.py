"""Sentences that remember what they were made of, so that a reader in another language can be shown them."""

from collections.abc import Iterable, Iterator, Mapping

Message = str | list["str | dict[str, Message] | list[Message]"]
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


def message(text: str) -> Message:
    """``text`` as it travels to the browser.

    >>> message(Text.made("8 of 9", "table.count", {"step": "8", "steps": "9"}))
    ['table.count', {'step': '8', 'steps': '9'}]
    >>> message("c_hook")
    'c_hook'
    """
    if not isinstance(text, Text):
        return text
    if isinstance(text.arguments, tuple):
        return [text.key, [message(item) for item in text.arguments]]
    return [text.key, {name: message(part) for name, part in text.arguments.items()}]


def keys_in(sent: Message) -> Iterator[str]:
    """The keys that a message needs texts for.

    >>> [*keys_in(["value.change", {"before": "8", "after": ["name.none", {}]}])]
    ['value.change', 'name.none']
    """
    if isinstance(sent, str):
        return
    key, arguments = sent
    assert isinstance(key, str)
    yield key
    parts: Iterable[Message] = arguments.values() if isinstance(arguments, dict) else arguments
    for part in parts:
        yield from keys_in(part)


def read(sent: Message, texts: Mapping[str, str]) -> str:
    """A message in the language of ``texts``, as the browser reads it.

    >>> read(["join.sum", ["8", "4"]], {"join.sum": " + "})
    '8 + 4'
    """
    if isinstance(sent, str):
        return sent
    key, arguments = sent
    assert isinstance(key, str)
    if isinstance(arguments, dict):
        return texts[key].format_map({name: read(part, texts) for name, part in arguments.items()})
    return texts[key].join(read(part, texts) for part in arguments)
