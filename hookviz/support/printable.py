"""Make texts from users' programs safe to display: on one line, without invisible characters."""

from hookviz.support.messages import _


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
    return (_("an {kind}") if kind[0] in "aeiouAEIOU" else _("a {kind}")).format(kind=kind)


def check_flag(name: str, flag: object) -> None:
    """Check an argument of a public function that is either True or False.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(flag, bool):
        raise TypeError(
            _("{name} is either True or False; this is {kind}.").format(name=name, kind=describe_type(flag))
        )
