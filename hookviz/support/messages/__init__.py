"""What users read: in English where it is said, and in other languages from catalogues in gettext's form.

A text with placeholders is translated first and filled then: ``_("There is no step {step}.").format(step=7)``.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files

from hookviz.support.messages.languages import current_language


@cache
def _read_catalogue(language: str) -> NullTranslations:
    """Read the translations into a language, once; English needs none."""
    catalogue = files(__name__).joinpath(f"{language}.mo")
    if not catalogue.is_file():
        return NullTranslations()
    with catalogue.open("rb") as file:
        return GNUTranslations(file)


def _(text: str) -> str:
    """Translate a text into the language in which hookviz speaks now; without a translation it stays in English.

    >>> from hookviz.support.messages.languages import speaking
    >>> with speaking("zh"):
    ...     _("before")
    '之前'
    """
    return _read_catalogue(current_language()).gettext(text)


def N_(text: str) -> str:  # noqa: N802  # gettext's name for it
    """Mark a text for the catalogues; ``_`` translates it when it is said.

    >>> N_("before")
    'before'
    """
    return text


def join_sentences(sentences: Iterable[str]) -> str:
    """Join the sentences that are not empty, with a space between them if the language has one there.

    >>> join_sentences(["One.", "", "Two."])
    'One. Two.'
    """
    return _("{sentence} {next}").format(sentence="", next="").join(filter(None, sentences))


def join_list(items: Iterable[str]) -> str:
    """Join the items that are not empty, with a comma between them.

    >>> join_list(["a", "", "b"])
    'a, b'
    """
    return _("{item}, {next}").format(item="", next="").join(filter(None, items))


def join_first(items: Sequence[str], most: int) -> str:
    """Join the first items with a comma between them, and say how many more there are.

    >>> join_first(["a", "b", "c"], 2)
    'a, b, 1 more'
    """
    more = len(items) - most
    return join_list([*items[:most], _("{count} more").format(count=f"{more:,}") if more > 0 else ""])
