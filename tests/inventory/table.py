"""The rows of ``features.toml``."""

import tomllib
from pathlib import Path
from typing import NamedTuple

FEATURES = Path(__file__).with_name("features.toml")


class Promise(NamedTuple):
    """One promise of hookviz."""

    kind: str
    name: str
    test: str
    """What fails when the promise breaks: the node id of a test, or a file and a text in it."""


def read_promises() -> list[Promise]:
    """Read the rows of all kinds."""
    kinds = tomllib.loads(FEATURES.read_text(encoding="utf-8"))
    return [Promise(kind, name, row["stays"]) for kind, rows in kinds.items() for name, row in rows.items()]
