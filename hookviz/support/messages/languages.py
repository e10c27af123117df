"""The language in which hookviz speaks."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

LANGUAGES = {"en": "English", "zh": "中文"}
"""Language → its own name for itself."""
LANGUAGE_TAGS = {"en": "en", "zh": "zh-CN"}
"""Language → its tag in HTML, by which a browser chooses the shapes of Chinese characters."""
VARIABLE = "HOOKVIZ_LANGUAGE"
UNKNOWN = "{variable}={given!r} is no language of hookviz, which speaks English now. Set it to one of: {known}."


def find_language(name: str) -> str | None:
    """Return the language that a name such as ``zh_CN.UTF-8`` stands for; None if hookviz does not have it.

    >>> find_language("zh-Hans"), find_language("EN"), find_language("fr")
    ('zh', 'en', None)
    """
    code = name.replace("_", "-").partition("-")[0].lower()
    return code if code in LANGUAGES else None


def _read_variable() -> str:
    """Return the language that the environment asks for; English, with a warning, if hookviz does not have it."""
    given = os.environ.get(VARIABLE, "")
    found = find_language(given) if given else "en"
    if found is None:
        warnings.warn(UNKNOWN.format(variable=VARIABLE, given=given, known=", ".join(LANGUAGES)), stacklevel=2)
    return found or "en"


_current = _read_variable()


def current_language() -> str:
    """Return the language in which hookviz speaks."""
    return _current


def set_language(language: str) -> None:
    """Let hookviz speak one of ``LANGUAGES`` from now on, in all threads."""
    global _current
    _current = language


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Let hookviz speak ``language`` inside a ``with`` block."""
    before = current_language()
    set_language(language)
    try:
        yield
    finally:
        set_language(before)
