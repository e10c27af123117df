"""What users read: in English where it is said, and in other languages from catalogues in gettext's form.

A text with placeholders is translated first and filled then: ``_("There is no step {step}.").format(step=7)``.
``hookviz.language`` chooses the language.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files

from hookviz.support.messages.languages import LANGUAGES, current_language, find_language, set_language

MAX_NAMED = 4
"""How many items a sentence names, unless it says so itself."""


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


def pluralize(count: int, one: str, many: str) -> str:
    """Return ``one`` or ``many``, two texts in the language of the reader, with the count in them.

    >>> pluralize(1, _("{count} step"), _("{count} steps")), pluralize(2000, _("{count} step"), _("{count} steps"))
    ('1 step', '2,000 steps')
    """
    return (one if count == 1 else many).format(count=f"{count:,}")


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


def join_first(items: Sequence[str], most: int = MAX_NAMED) -> str:
    """Join the first items with a comma between them, and say how many more there are.

    >>> join_first(["a", "b", "c"], 2)
    'a, b, 1 more'
    """
    more = len(items) - most
    return join_list([*items[:most], _("{count} more").format(count=f"{more:,}") if more > 0 else ""])


def language(name: str | None = None) -> str:
    """Choose the language of everything that hookviz says from now on: players, pages, answers, errors.

    The variable ``HOOKVIZ_LANGUAGE`` of the environment chooses it for a whole session. What was shown before stays
    as it is; show a trace again to see it in the new language, since a trace holds no sentences.

    Args:
        name: ``"en"`` for English or ``"zh"`` for Chinese; ``"zh_CN"`` and the like mean the same. None only asks.

    Returns:
        The language: ``"en"`` or ``"zh"``.

    Raises:
        ValueError: hookviz does not have this language.

    >>> import hookviz as hv
    >>> hv.language("zh")
    'zh'
    >>> hv.hooks()
    这里没有注册钩子。
    >>> hv.language("en")
    'en'
    """
    if name is not None:
        set_language(check_language(name))
    return current_language()


def check_language(name: object) -> str:
    """Return the language that the caller of a public function names, such as ``zh`` for ``"zh_CN"``.

    Raises:
        ValueError: hookviz does not have it.
    """
    found = find_language(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(
            _("hookviz does not speak {given}. It speaks: {known}.").format(
                given=repr(name), known=", ".join(map(repr, LANGUAGES))
            )
        )
    return found
