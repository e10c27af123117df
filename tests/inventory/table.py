"""The rows of ``features.toml``."""

import tomllib
from pathlib import Path
from typing import NamedTuple

FEATURES = Path(__file__).with_name("features.toml")
FATES = ("stays", "merged", "goes")


class Promise(NamedTuple):
    """One promise of hookviz, and what becomes of it."""

    kind: str
    name: str
    fate: str
    note: str
    """Into what it is merged, or why it goes; of one that stays, what changes about it."""
    program: str
    """The program that fails when the promise breaks: the node id of a test, or a file and a text in it."""


def read_promises() -> list[Promise]:
    """Read the rows of all kinds."""
    kinds = tomllib.loads(FEATURES.read_text(encoding="utf-8"))
    return [_read_row(kind, name, row) for kind, rows in kinds.items() for name, row in rows.items()]


def _read_row(kind: str, name: str, row: dict[str, str]) -> Promise:
    [fate] = [key for key in row if key in FATES]
    if fate == "stays":
        return Promise(kind, name, fate, row.get("note", ""), row[fate])
    return Promise(kind, name, fate, row[fate], row.get("program", ""))
