"""A content in several languages, for a player in which one can switch between them."""

from collections.abc import Callable, Sequence

from hookviz.player.compression import pack
from hookviz.player.payload import Content
from hookviz.support.messages import check_language
from hookviz.support.messages.languages import LANGUAGES, current_language, speaking


def check_languages(languages: str | Sequence[str] | None) -> list[str]:
    """Return the languages that the caller of a public function asks for, one or several, each once; empty for None.

    Raises:
        ValueError: hookviz does not have one of them.

    >>> check_languages(("zh_CN", "en")), check_languages(None)
    (['zh', 'en'], [])
    """
    names = [languages] if isinstance(languages, str) else languages or ()
    return [*dict.fromkeys(map(check_language, names))]


def make_editions(make: Callable[[], Content], languages: Sequence[str]) -> Content:
    """Make a content in the first of ``languages``, with the same content in the others; empty for the current one."""
    contents: dict[str, Content] = {}
    for language in languages or [current_language()]:
        with speaking(language):
            contents[language] = make()
    first, *others = contents.values()
    return {**first, "others": {content["language"]: pack(content) for content in others}}


def offer_languages(content: Content) -> Content:
    """Offer the switch to each other language in a player with a kernel, which makes the content when it is asked."""
    return {**content, "others": {name: "" for name in LANGUAGES if name != content["language"]}}
