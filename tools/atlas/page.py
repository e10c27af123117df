"""The page of the atlas: Markdown for the site, made from the file of the atlas."""

import shutil
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from tools.atlas.atlas_file import FILE, read_atlas
from tools.atlas.differences import KINDS, SURPRISE, Difference, boundaries, find_changes

GROUPS = {
    "tensors": "Hooks on tensors",
    "graph": "Hooks on the graph and on what it saves",
    "modules": "Hooks on a module",
    "global_modules": "Hooks on all modules",
    "saving": "Hooks on saving and loading a module",
    "optimizers": "Hooks on optimizers",
    "settings": "Hooks in special places",
}
INTRODUCTION = """\
# The atlas of hooks

For each way to register a hook in PyTorch, and for each of the versions {versions}, this page shows when the hook
fires, with what, what it may change and when it stays silent. Nothing here is quoted from documentation: {programs}
small programs ran in each version that has what they use (Linux, CPU, Python {python}),
and you see what they printed.

Open a sentence to see its program and its output. The whole table is also a file:
<a href="atlas.json" download>atlas.json</a> ({size} kB); [how to read it](#the-file).
"""
THE_FILE = """\
## The file

`atlas.json` holds all that is on this page. `format` is {format}; it grows when the meaning of a field changes.
`versions` lists the versions of torch that ran, and `entries` the ways to register a hook: `api` is the dotted name,
`exists` lists the versions that have it, `signatures` its parameters without annotations. `registers` is false for the
entries of the last part, which are about hooks in special places.

Each of the `situations` has a `question` (`when`, `arguments`, `changes`, `silent` or `also`), a `text`, and its
`code`, which runs after the `preamble` of the entry. In `results`, versions with the same outcome stand together. Their
`events` come in the order in which they happened: a line that the program `printed`, a `warning` with its text, or an
`error` that ended the program. `crash` means that the whole process ended with this signal. Addresses in memory,
colours and places in torch's C++ files are left out of all texts. Each warning is listed, also one that Python would
show once.

`differences` explains where versions differ, and (of the kind `surprise`) what is surprising although they agree. Each
names the `places` that show it, as the `key` of the entry, `#`, and the `key` of the situation (or `signature`, or
`exists`).
"""
CODE = "```python\n{}\n```"
OUTPUT = "```{{code-block}} text\n:class: atlas-output\n{}\n```"
NOTHING = "(nothing)"


def write_page(source: Path) -> None:
    """Write the page among the sources of the site, and put the file where the site serves it."""
    (source / "atlas.md").write_text(make_page(read_atlas()), encoding="utf-8")
    (source / "extra").mkdir(exist_ok=True)
    shutil.copy(FILE, source / "extra")


def make_page(atlas: Mapping[str, Any]) -> str:
    """Make the Markdown of the page."""
    versions = [version["torch"] for version in atlas["versions"]]
    changes = find_changes(atlas)
    introduction = INTRODUCTION.format(
        versions=" · ".join(versions),
        programs=sum(len(entry["situations"]) for entry in atlas["entries"]),
        python=atlas["versions"][-1]["python"],
        size=FILE.stat().st_size // 1000,
    )
    differences = [Difference(**table) for table in atlas["differences"]]
    parts = [introduction, *_differences(differences, changes), "## Overview\n", _overview(atlas, versions, changes)]
    group = None
    for entry in atlas["entries"]:
        if group != (group := entry["key"].partition("/")[0]):
            parts.append(f"## {GROUPS[group]}\n")
        parts.extend(_entry(entry, versions, atlas["questions"], changes, differences))
    return "\n".join([*parts, THE_FILE.format(format=atlas["format"])])


# -- differences


def _differences(differences: list[Difference], changes: Mapping[str, list[tuple[str, str]]]) -> list[str]:
    parts = ["## Where versions differ\n"]
    for kind, title in {**KINDS, SURPRISE: "Surprises in every version"}.items():
        parts.append(f"### {title}\n")
        parts.extend(_difference(difference, changes) for difference in differences if difference.kind == kind)
    return parts


def _difference(difference: Difference, changes: Mapping[str, list[tuple[str, str]]]) -> str:
    between = " and ".join(f"between {old} and {new}" for old, new in boundaries(difference, changes))
    shown = " · ".join(f"[{_place_name(place)}](#{_anchor(place)})" for place in difference.places)
    when = f" (changed {between})" if between else ""
    lines = [f"**{difference.title}**{when}", "", difference.what.strip()]
    if difference.meaning:
        lines += ["", f"*For your hook:* {difference.meaning.strip()}"]
    return "\n".join([*lines, "", f"Programs: {shown}", ""])


def _place_name(place: str) -> str:
    """Name a place of the atlas in a link: the way to register, and the situation."""
    key, _, situation = place.partition("#")
    words = situation.partition(".")[2].replace("_", " ")
    return f"`{key.partition('/')[2]}`" + (f" {words}" if words else "")


def _anchor(place: str) -> str:
    """Name the part of the page that shows a place of the atlas."""
    key, _, situation = place.partition("#")
    name = key if situation in ("exists", "signature") else place
    return "atlas-" + "-".join(name.replace("#", "/").replace(".", "/").replace("_", "-").split("/"))


# -- the table


def _overview(atlas: Mapping[str, Any], versions: list[str], changes: Mapping[str, list[tuple[str, str]]]) -> str:
    rows = [
        "Each cell compares a version with the one to its left: *same*, or ≠ and how many situations differ.\n",
        "| Way to register | " + " | ".join(versions) + " |",
        "| --- |" + " --- |" * len(versions),
    ]
    for entry in atlas["entries"]:
        cells = [_compare(entry, old, new, changes) for old, new in zip([None, *versions], versions, strict=False)]
        rows.append(f"| [`{short_name(entry)}`](#{_anchor(entry['key'])}) | " + " | ".join(cells) + " |")
    return "\n".join([*rows, ""])


def _compare(entry: Mapping[str, Any], old: str | None, new: str, changes: Mapping[str, list[tuple[str, str]]]) -> str:
    if new not in entry["exists"]:
        return "absent"
    if old is None:
        return "present"
    if old not in entry["exists"]:
        return "**new**"
    count = sum(key.startswith(f"{entry['key']}#") and (old, new) in pairs for key, pairs in changes.items())
    return f"**≠ {count}**" if count else "same"


def short_name(entry: Mapping[str, Any]) -> str:
    """Shorten a dotted name to what one types after the usual imports; two ways with one name get their mode."""
    mode = {"multi_grad_all": '(mode="all")', "multi_grad_any": '(mode="any")'}.get(entry["key"].split("/")[1], "")
    name = str(entry["api"]).removeprefix("torch.")
    for prefix in ("nn.modules.module.", "optim.optimizer.", "autograd.graph.", "_C._autograd.", "nn.", "optim."):
        name = name.removeprefix(prefix)
    return name.removeprefix("autograd.Variable._execution_engine.").removeprefix("utils.checkpoint.") + mode


# -- one way to register


def _entry(
    entry: Mapping[str, Any],
    versions: list[str],
    questions: Mapping[str, str],
    changes: Mapping[str, list[tuple[str, str]]],
    differences: list[Difference],
) -> list[str]:
    parts = [f"({_anchor(entry['key'])})=\n### `{short_name(entry)}`\n", f"{entry['summary']}\n"]
    parts.extend(_signature(entry, versions))
    parts.extend(
        f"{difference.title}: {_first_sentence(difference.what)}\n"
        for difference in differences
        if any(place.startswith(f"{entry['key']}#") for place in difference.places)
        and difference.kind in ("behaviour", "interface")
    )
    if entry["preamble"] != "import torch":
        parts.append(_details("Each program begins with", [CODE.format(entry["preamble"])]))
    for question, title in questions.items():
        asked = [situation for situation in entry["situations"] if situation["question"] == question]
        if asked:
            parts.append(f"**{title}**\n")
        parts.extend(_situation(entry, situation, versions, changes) for situation in asked)
    return parts


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".") + "."


def _signature(entry: Mapping[str, Any], versions: list[str]) -> list[str]:
    if not entry["registers"]:
        return []
    lines = [f"`{entry['api']}`"]
    for group in entry["signatures"]:
        where = "" if group["versions"] == versions else f" in {_join(group['versions'])}"
        lines.append(f"`{group['text']}`{where}")
    if entry["exists"] != versions:
        lines.append(f"only in {_join(entry['exists'])}")
    return [" · ".join(lines) + "\n"]


def _situation(
    entry: Mapping[str, Any],
    situation: Mapping[str, Any],
    versions: list[str],
    changes: Mapping[str, list[tuple[str, str]]],
) -> str:
    place = f"{entry['key']}#{situation['key']}"
    parts = [CODE.format(situation["code"])]
    for group in situation["results"]:
        where = "Every version" if group["versions"] == versions else f"torch {_join(group['versions'])}"
        parts += [f"{where} prints:\n" if where == "Every version" else f"{where}:\n", _output(group["events"])]
    mark = ' <span class="atlas-differs">versions differ</span>' if place in changes else ""
    return _details(_inline_code(situation["text"]) + mark, parts, _anchor(place))


def _output(events: list[dict[str, str]]) -> str:
    return OUTPUT.format("\n".join(map(write_event, events)) or NOTHING)


def write_event(event: Mapping[str, str]) -> str:
    """Write what happened as one line of output, or several if torch wrote several."""
    if "printed" in event:
        return event["printed"]
    (kind, name), (_, text) = event.items()
    return f"{name}: {text}" if kind != "crash" else f"{name}: {text} ({kind})"


def _details(summary: str, parts: list[str], anchor: str = "") -> str:
    # A link to a place inside of the details opens them; a link to the details themselves does not.
    target = f"({anchor})=\n" if anchor else ""
    first, *rest = parts
    opening = f'<details class="atlas"><summary>{summary}</summary>'
    return "\n\n".join([opening, f"{target}{first}", *rest, "</details>\n"])


def _inline_code(text: str) -> str:
    """Turn `code` into HTML, as Markdown is not read inside a summary."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))


def _join(versions: list[str]) -> str:
    return ", ".join(versions)
