"""Differences between versions: those in the observations, and those that ``differences.toml`` explains."""

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tools.atlas.atlas_file import version_key

EXPLANATIONS = Path(__file__).with_name("differences.toml")
KINDS = {
    "behaviour": "What hooks do",
    "interface": "What can be called",
    "wording": "Only the words of a message",
}
SURPRISE = "surprise"
"""The kind of what is no difference, but not what one expects either."""


class Difference(NamedTuple):
    """One explained difference, and the places of the atlas that show it."""

    title: str
    kind: str
    what: str
    meaning: str
    places: list[str]
    """``key of the entry#key of the situation``, or ``#exists`` or ``#signature`` after the key of the entry."""


def read_explanations(path: Path = EXPLANATIONS) -> list[Difference]:
    """Read what is explained."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["difference"]
    return [Difference(**{"meaning": "", **table}) for table in tables]


def read_surprises(path: Path = EXPLANATIONS) -> list[Difference]:
    """Read what is surprising although all versions agree."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["surprise"]
    return [Difference(kind=SURPRISE, meaning="", **table) for table in tables]


def find_changes(atlas: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """Find the places where versions differ, each with the pairs of neighbouring versions between which it changes."""
    versions = [version["torch"] for version in atlas["versions"]]
    found = {}
    for place, values in _values(atlas):
        seen = [version for version in versions if version in values]
        pairs = [(a, b) for a, b in itertools.pairwise(seen) if values[a] != values[b]]
        if pairs:
            found[place] = pairs
    return found


def _values(atlas: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name each place of the atlas, and its value in each version that has one."""
    for entry in atlas["entries"]:
        key = entry["key"]
        yield f"{key}#exists", {version["torch"]: version["torch"] in entry["exists"] for version in atlas["versions"]}
        yield f"{key}#signature", _by_version(entry["signatures"])
        for situation in entry["situations"]:
            yield f"{key}#{situation['key']}", _by_version(situation["results"])


def _by_version(groups: list[dict[str, Any]]) -> dict[str, Any]:
    return {version: number for number, group in enumerate(groups) for version in group["versions"]}


def boundaries(difference: Difference, changes: Mapping[str, list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Find between which versions a difference lies, from all the places that show it."""
    pairs = {pair for place in difference.places for pair in changes.get(place, [])}
    return sorted(pairs, key=lambda pair: version_key(pair[0]))
