"""Every sentence and label that a person reads, from one table per language."""

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
def table(language: str = "en") -> Mapping[str, str]:
    """All texts of one language: key → text with ``{named}`` places.

    >>> table()["card.before"]
    'before'
    """
    return read_table(files(__name__).joinpath(f"{language}.json"))


def read_table(file: Traversable) -> Mapping[str, str]:
    """The texts of a JSON file: key → text."""
    texts: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    return texts


def fill(text: str, /, **parts: Any) -> str:
    """``text`` with its ``{named}`` places filled."""
    return text.format_map({name: str(part) for name, part in parts.items()})


def say(key: str, **parts: Any) -> Text:
    """The text kept under ``key``, its places filled with ``parts``.

    >>> say("error.step", step=99, last=15)
    'There is no step 99: this trace has the steps 0 to 15.'
    """
    arguments = {name: part if isinstance(part, str) else str(part) for name, part in parts.items()}
    # As ``Text.made``, which would be one more call for each of thousands of sentences.
    text = Text(table()[key].format_map(arguments))
    text.key, text.arguments = key, arguments
    return text


def join(key: str, items: Iterable[str]) -> str:
    """``items`` in a row, with the text kept under ``key`` between them; a single one is itself.

    >>> join("join.sum", ["8", "4"])
    '8 + 4'
    """
    found = tuple(item for item in items if item)
    if len(found) < 2:
        return found[0] if found else ""
    return Text.made(table()[key].join(found), key, found)


def parts_of(key: str, text: str) -> dict[str, str] | None:
    """What ``say(key, ...)`` was given to make ``text``; None where it does not make such a text.

    >>> parts_of("error.step", say("error.step", step=99, last=15))
    {'step': '99', 'last': '15'}
    >>> parts_of("error.step", "Something else.") is None
    True
    """
    return match_text(table()[key], text)


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


def section(prefix: str) -> dict[str, str]:
    """The texts whose keys begin with ``prefix.``, without the prefix: what the player takes along.

    >>> section("effect")["kept"]
    'kept'
    """
    start = f"{prefix}."
    return {key.removeprefix(start): text for key, text in table().items() if key.startswith(start)}
