"""The texts of the course, a JSON file per language: key → text with ``{named}`` placeholders."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


@cache
def read_texts(name: str) -> Mapping[str, str]:
    """Read the texts of one file of this package, once.

    >>> read_texts("zh.json")["number"]
    '答案应当是一个数。'
    """
    texts: dict[str, str] = json.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return texts
