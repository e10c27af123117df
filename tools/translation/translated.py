"""Texts that tools write into pages, in the language of the edition."""

from tools.translation.catalogue import read_translations


def translated(text: str, language: str) -> str:
    """Return ``text`` in a language. The first argument is always a literal: the catalogue finds it by this call.

    >>> translated("Date", "zh")
    '日期'
    """
    return text if language == "en" else read_translations(language).translate(text)


def translatable(text: str) -> str:
    """Return ``text``, a literal that the catalogue finds by this call, and that is translated later."""
    return text
