"""Text of users' programs on one line, with nothing in it that cannot be seen."""


def visible(text: str) -> str:
    """``text`` on one line; what cannot be seen, or would turn the line around, is shown as �.

    >>> visible("a\\nb\\u202e")
    'a b\\ufffd'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))
