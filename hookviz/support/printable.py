"""Make texts from users' programs safe to display: on one line, without invisible characters."""

from hookviz.support.messages import say


def make_printable(text: str) -> str:
    """Return ``text`` on one line; invisible characters, and those that change the writing direction, become �.

    >>> make_printable("a\\nb\\u202e")
    'a b\\ufffd'
    """
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in " ".join(text.split()))


def describe_type(x: object) -> str:
    """Name the type of ``x`` with its article, for an error message: ``a list``, ``an int``.

    >>> describe_type([]), describe_type(3)
    ('a list', 'an int')
    """
    kind = type(x).__name__
    return say("name.an_object" if kind[0] in "aeiouAEIOU" else "name.an_object.consonant", kind=kind)
