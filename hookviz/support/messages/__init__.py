"""All sentences and labels that users read, from one table (a JSON file) per language."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Formatter
from typing import Any

from hookviz.support.messages.text import Text


@cache
def load_texts(language: str = "en") -> Mapping[str, str]:
    """Return all texts of one language: key → text with ``{named}`` placeholders.

    >>> load_texts()["card.before"]
    'before'
    """
    return read_texts(files(__name__).joinpath(f"{language}.json"))


def read_texts(file: Traversable) -> Mapping[str, str]:
    """Read the texts of a JSON file: key → text."""
    texts: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return texts


def fill_text(text: str, /, **parts: Any) -> str:
    """Fill the ``{named}`` placeholders of ``text``."""
    return text.format_map({name: str(part) for name, part in parts.items()})


def say(key: str, **parts: Any) -> Text:
    """Return the text of ``key`` with its placeholders filled with ``parts``.

    >>> say("error.step", step=99, last=15)
    'There is no step 99: this trace has the steps 0 to 15.'
    """
    arguments = {name: part if isinstance(part, str) else str(part) for name, part in parts.items()}
    # Like ``Text.build``, without the cost of one more call for each of thousands of sentences.
    text = Text(load_texts()[key].format_map(arguments))
    text.key, text.arguments = key, arguments
    return text


def join(key: str, items: Iterable[str]) -> str:
    """Join the non-empty ``items`` with the text of ``key`` between them; a single item is returned unchanged.

    >>> join("join.sum", ["8", "4"])
    '8 + 4'
    """
    non_empty = tuple(item for item in items if item)
    if len(non_empty) < 2:
        return non_empty[0] if non_empty else ""
    return Text.build(load_texts()[key].join(non_empty), key, non_empty)


def match_arguments(key: str, text: str) -> dict[str, str] | None:
    """Return the arguments with which ``say(key, ...)`` made ``text``; None if it cannot have made it.

    >>> match_arguments("error.step", say("error.step", step=99, last=15))
    {'step': '99', 'last': '15'}
    >>> match_arguments("error.step", "Something else.") is None
    True
    """
    return match_text(load_texts()[key], text)


def match_text(template: str, text: str) -> dict[str, str] | None:
    """The parts that fill the ``{named}`` places of ``template`` in ``text``; None if ``text`` is not made of it.

    >>> match_text("step {step} of {steps}", "step 2 of 9")
    {'step': '2', 'steps': '9'}
    """
    pattern, named = "", set()
    for before, name, _, _ in Formatter().parse(template):
        again = f"(?P={name})" if name in named else f"(?P<{name}>.*?)"  # a part may be said twice
        pattern += re.escape(before) + (again if name else "")
        named.add(name)
    found = re.fullmatch(pattern, text)
    return None if found is None else found.groupdict()


def select_texts(prefix: str) -> dict[str, str]:
    """Return the texts whose keys begin with ``prefix.``; their keys here lack the prefix.

    >>> select_texts("effect")["kept"]
    'kept'
    """
    start = f"{prefix}."
    return {key.removeprefix(start): text for key, text in load_texts().items() if key.startswith(start)}
