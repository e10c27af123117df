"""The file of the atlas: what all programs showed in all versions, joined from runs and from an older file."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.atlas.observer import SETTINGS, Cell, Program

ROOT = Path(__file__).parents[2]
FILE = ROOT / "site" / "atlas.json"
FORMAT = 1
QUESTIONS = {
    "when": "When it fires",
    "arguments": "With what",
    "changes": "What it may change",
    "silent": "When it stays silent",
    "also": "Worth knowing",
}
Observations = dict[str, dict[str, Any]]
"""What each program showed in one version, by the key of the program."""


def read_atlas(path: Path = FILE) -> dict[str, Any]:
    """Read the atlas."""
    atlas: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return atlas


def write_atlas(atlas: Mapping[str, Any], path: Path = FILE) -> None:
    """Write the atlas, the same content always as the same bytes."""
    path.write_text(json.dumps(atlas, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")


def merge(programs: list[Program], runs: Iterable[Mapping[str, Any]], old: Mapping[str, Any]) -> dict[str, Any]:
    """Join new runs with those observations of an older atlas that the programs as they are now would show."""
    pythons = {version["torch"]: version["python"] for version in old.get("versions", [])}
    seen = {torch: observations_of(old, torch, programs) for torch in pythons}
    for run in runs:
        pythons[run["torch"]] = run["python"]
        seen[run["torch"]] = run["programs"]
    versions = sorted(pythons, key=version_key)
    return {
        "format": FORMAT,
        "versions": [{"torch": torch, "python": pythons[torch]} for torch in versions],
        "questions": QUESTIONS,
        "entries": [_entry(program, {torch: seen[torch] for torch in versions}) for program in programs],
    }


def version_key(version: str) -> tuple[int, ...]:
    """Make a key that sorts 2.8.0 before 2.11.0."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def observations_of(atlas: Mapping[str, Any], torch: str, programs: list[Program]) -> Observations:
    """Find what programs showed in one version, without the situations whose code has changed since."""
    entries = {entry["key"]: entry for entry in atlas.get("entries", [])}
    known = [program for program in programs if program.key in entries]
    return {program.key: _observation(entries[program.key], torch, program) for program in known}


def _observation(entry: Mapping[str, Any], torch: str, program: Program) -> dict[str, Any]:
    current = {cell.key: cell.code for cell in program.cells} if entry["preamble"] == program.preamble else {}
    cells = {
        situation["key"]: result["events"]
        for situation in entry["situations"]
        for result in situation["results"]
        if torch in result["versions"] and current.get(situation["key"]) == situation["code"]
    }
    signature = next((one["text"] for one in entry["signatures"] if torch in one["versions"]), None)
    return {"exists": torch in entry["exists"], "signature": signature, "cells": cells}


def _entry(program: Program, seen: Mapping[str, Observations]) -> dict[str, Any]:
    own = {torch: observed[program.key] for torch, observed in seen.items() if program.key in observed}
    there = {torch: one for torch, one in own.items() if one["exists"]}
    return {
        "key": program.key,
        "api": program.api,
        "registers": program.group != SETTINGS,
        "summary": program.summary,
        "preamble": program.preamble,
        "exists": list(there),
        "signatures": _group("text", {torch: one["signature"] for torch, one in there.items() if one["signature"]}),
        "situations": [_situation(cell, there) for cell in program.cells],
    }


def _situation(cell: Cell, there: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    events = {torch: one["cells"][cell.key] for torch, one in there.items() if cell.key in one["cells"]}
    return {
        "key": cell.key,
        "question": cell.question,
        "text": cell.text,
        "code": cell.code,
        "results": _group("events", events),
    }


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


def find_gaps(atlas: Mapping[str, Any]) -> dict[str, list[str]]:
    """Find the situations that lack an observation, by version."""
    gaps: dict[str, list[str]] = {}
    for entry in atlas["entries"]:
        for situation in entry["situations"]:
            seen = {torch for result in situation["results"] for torch in result["versions"]}
            for torch in entry["exists"]:
                if torch not in seen:
                    gaps.setdefault(torch, []).append(f"{entry['key']}#{situation['key']}")
    return gaps
