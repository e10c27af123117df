"""``hookviz.language``: which language hookviz speaks."""

from hookviz.support.messages import _
from hookviz.support.messages.languages import LANGUAGES, current_language, find_language, set_language


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
