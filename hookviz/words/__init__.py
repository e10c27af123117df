"""Every sentence and label that a person reads, from one table per language."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def table(language: str = "en") -> Mapping[str, str]:
    """All texts of one language: key → text with ``{named}`` places.

    >>> table()["card.before"]
    'before'
    """
    text = files(__name__).joinpath(f"{language}.json").read_text(encoding="utf-8")
    words: dict[str, str] = json.loads(text)
    return words


def say(key: str, **parts: Any) -> str:
    """The text kept under ``key``, its places filled with ``parts``.

    >>> say("error.step", step=99, last=15)
    'There is no step 99: this trace has the steps 0 to 15.'
    """
    return table()[key].format_map({name: str(part) for name, part in parts.items()})


def section(prefix: str) -> dict[str, str]:
    """The texts whose keys begin with ``prefix.``, without the prefix: what the player takes along.

    >>> section("effect")["kept"]
    'kept'
    """
    start = f"{prefix}."
    return {key.removeprefix(start): text for key, text in table().items() if key.startswith(start)}
