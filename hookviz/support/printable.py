"""Text of users' programs on one line, with nothing in it that cannot be seen, or cut with a sign of it."""


def printable(text: str) -> str:
    """``text`` on one line; what cannot be seen, or would turn the line around, is shown as �.

    >>> printable("a\\nb\\u202e")
    'a b\\ufffd'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def truncate(text: str, room: int) -> str:
    """``text`` in at most ``room`` characters; what is cut shows as an ellipsis.

    >>> truncate("a_very_long_name", 8), truncate("short", 8)
    ('a_very_…', 'short')
    """
    return text if len(text) <= room else f"{text[: room - 1]}…"


def kind_of(thing: object) -> str:
    """What ``thing`` is, for an error message: ``a list``, ``an int``.

    >>> kind_of([]), kind_of(3)
    ('a list', 'an int')
    """
    kind = type(thing).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
