"""All sentences and labels that users read, from one table (a JSON file) per language."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hookviz.support.messages.languages import current_language
from hookviz.support.messages.text import Text


def load_texts(language: str | None = None) -> Mapping[str, str]:
    """Return all texts of one language: key → text with ``{named}`` placeholders; None means the current language.

    >>> load_texts()["card.before"], load_texts("zh")["card.before"]
    ('before', '之前')
    """
    return read_texts(__name__, f"{language or current_language()}.json")


@cache
def read_texts(package: str, name: str) -> Mapping[str, str]:
    """Read the texts of a JSON file in a package, once: key → text."""
    texts: dict[str, str] = json.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
    return texts


def fill_text(text: str, /, **parts: Any) -> str:
    """Fill the ``{named}`` placeholders of ``text``."""
    return text.format_map({name: str(part) for name, part in parts.items()})


def say(key: str, **parts: Any) -> Text:
    """Return the text of ``key`` with its placeholders filled with ``parts``.

    >>> say("error.step", step=99, last=15)
    'There is no step 99: this trace has the steps 0 to 15.'
    """
    if not parts:
        return _say_alone(key, current_language())
    arguments = {name: part if isinstance(part, str) else str(part) for name, part in parts.items()}
    # Like ``Text.build``, without the cost of one more call for each of thousands of sentences.
    text = Text(load_texts()[key].format_map(arguments))
    text.key, text.arguments = key, arguments
    return text


@cache
def _say_alone(key: str, language: str) -> Text:
    """Return the text of a key without placeholders, which is made only once."""
    return Text.build(load_texts(language)[key].format_map({}), key, {})


def join(key: str, items: Iterable[str]) -> str:
    """Join the non-empty ``items`` with the text of ``key`` between them; a single item is returned unchanged.

    >>> join("join.sum", ["8", "4"])
    '8 + 4'
    """
    non_empty = tuple(item for item in items if item)
    if len(non_empty) < 2:
        return non_empty[0] if non_empty else ""
    return Text.build(load_texts()[key].join(non_empty), key, non_empty)


def select_texts(prefix: str) -> dict[str, str]:
    """Return the texts whose keys begin with ``prefix.``; their keys here lack the prefix.

    >>> select_texts("effect")["kept"]
    'kept'
    """
    start = f"{prefix}."
    return {key.removeprefix(start): text for key, text in load_texts().items() if key.startswith(start)}
