"""What all programs showed in all versions of torch: ``atlas.json``, made from runs and from what it held before."""

import itertools
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from atlas.observer import Cell, Program

FILE = Path(__file__).with_name("atlas.json")
EXPLANATIONS = Path(__file__).with_name("differences.toml")
QUESTIONS = {
    "when": "When it fires",
    "arguments": "With what",
    "changes": "What it may change",
    "silent": "When it stays silent",
    "also": "Worth knowing",
}
Table = Mapping[str, Any]
"""An object of a JSON or TOML file."""


def read_atlas() -> dict[str, Any]:
    """Read the atlas."""
    atlas: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return atlas


def write_atlas(atlas: Table) -> str:
    """Write the atlas as text, the same content always as the same text."""
    return json.dumps(atlas, ensure_ascii=False, indent=1) + "\n"


def read_differences() -> list[dict[str, Any]]:
    """Read the explanations of differences, and of what is surprising although all versions agree."""
    tables = tomllib.loads(EXPLANATIONS.read_text(encoding="utf-8"))["difference"]
    return [{name: table.get(name, "") for name in ("title", "kind", "what", "meaning", "places")} for table in tables]


def make_atlas(programs: Iterable[Program], runs: Iterable[Table]) -> dict[str, Any]:
    """Make the atlas of what programs showed; of two runs with the same version, the last one counts."""
    by_version = {run["torch"]: run for run in runs}
    ordered = [by_version[version] for version in sorted(by_version, key=sort_key)]
    return {
        "format": 1,
        "versions": [{"torch": run["torch"], "python": run["python"]} for run in ordered],
        "questions": QUESTIONS,
        "entries": [_entry(program, ordered) for program in programs],
        "differences": read_differences(),
    }


def sort_key(version: str) -> list[int]:
    """Make a key that sorts 2.8.0 before 2.11.0."""
    return [int(part) for part in version.split(".") if part.isdigit()]


def _entry(program: Program, runs: Iterable[Table]) -> dict[str, Any]:
    seen = {run["torch"]: run["programs"][program.key] for run in runs if run["programs"].get(program.key)}
    return {
        "key": program.key,
        "api": program.api,
        "registers": program.registers,
        "summary": program.summary,
        "preamble": program.preamble,
        "exists": list(seen),
        "signatures": _group("text", {torch: one["signature"] for torch, one in seen.items() if one["signature"]}),
        "situations": [_situation(cell, seen) for cell in program.cells],
    }


def _situation(cell: Cell, seen: Mapping[str, Table]) -> dict[str, Any]:
    events = {torch: one["cells"][cell.key] for torch, one in seen.items() if cell.key in one["cells"]}
    facts = {"key": cell.key, "question": cell.question, "text": cell.text, "code": cell.code}
    return {**facts, "results": _group("events", events)}


def _group(name: str, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Put versions with the same value together, in the order of the first of them."""
    groups: list[dict[str, Any]] = []
    for torch, value in values.items():
        same = next((group for group in groups if group[name] == value), None)
        if same is None:
            groups.append({"versions": [torch], name: value})
        else:
            same["versions"].append(torch)
    return groups


def runs_of(atlas: Table, programs: Iterable[Program]) -> list[dict[str, Any]]:
    """Return the runs of which an atlas was made, without the situations whose code has changed since."""
    current = {program.key: program for program in programs}
    entries = [entry for entry in atlas["entries"] if entry["key"] in current]
    return [
        {**version, "programs": {entry["key"]: _seen(entry, version["torch"], current) for entry in entries}}
        for version in atlas["versions"]
    ]


def _seen(entry: Table, torch: str, programs: Mapping[str, Program]) -> dict[str, Any] | None:
    """What a program showed in one version; None if that version lacks what the program is about."""
    if torch not in entry["exists"]:
        return None
    program = programs[entry["key"]]
    codes = {cell.key: cell.code for cell in program.cells} if program.preamble == entry["preamble"] else {}
    cells = {
        situation["key"]: result["events"]
        for situation in entry["situations"]
        for result in situation["results"]
        if torch in result["versions"] and codes.get(situation["key"]) == situation["code"]
    }
    return {"signature": _by_version(entry["signatures"], "text").get(torch), "cells": cells}


def _by_version(groups: Iterable[Table], name: str) -> dict[str, Any]:
    return {version: group[name] for group in groups for version in group["versions"]}


def find_changes(atlas: Table) -> dict[str, list[tuple[str, str]]]:
    """Find the places where versions differ, each with the pairs of neighbouring versions between which it changes."""
    found = {}
    for place, values in _values(atlas):
        pairs = [(old, new) for old, new in itertools.pairwise(values) if values[old] != values[new]]
        if pairs:
            found[place] = pairs
    return found


def _values(atlas: Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name each place of the atlas, and its value in each version that has one, in the order of the versions."""
    versions = [version["torch"] for version in atlas["versions"]]
    for entry in atlas["entries"]:
        yield f"{entry['key']}#exists", {version: version in entry["exists"] for version in versions}
        places = [("signature", entry["signatures"], "text")]
        places += [(situation["key"], situation["results"], "events") for situation in entry["situations"]]
        for key, groups, name in places:
            found = _by_version(groups, name)
            yield f"{entry['key']}#{key}", {version: found[version] for version in versions if version in found}


def find_faults(atlas: Table) -> list[str]:
    """Say which situations some version has not run as they are now, and which differences are not explained."""
    faults = []
    for entry in atlas["entries"]:
        for situation in entry["situations"]:
            missing = set(entry["exists"]) - _by_version(situation["results"], "events").keys()
            faults += [
                f"torch {torch} has not run {entry['key']}#{situation['key']}"
                for torch in sorted(missing, key=sort_key)
            ]
    changes = find_changes(atlas)
    explained = {place for one in atlas["differences"] if one["kind"] != "surprise" for place in one["places"]}
    faults += [f"Not explained in differences.toml: {place} {changes[place]}" for place in changes.keys() - explained]
    return faults + [f"Explained, but all versions agree: {place}" for place in sorted(explained - changes.keys())]
