"""The page of the atlas: Markdown for the site, made from the file of the atlas."""

import itertools
import re
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path

from atlas.results import FILE, Table, find_changes, read_atlas, sort_key

GROUPS = {
    "tensors": "Hooks on tensors",
    "graph": "Hooks on the graph and on what it saves",
    "modules": "Hooks on a module",
    "global_modules": "Hooks on all modules",
    "saving": "Hooks on saving and loading a module",
    "optimizers": "Hooks on optimizers",
    "settings": "Hooks in special places",
}
KINDS = {
    "behaviour": "What hooks do",
    "interface": "What can be called",
    "wording": "Only the words of a message",
    "surprise": "Surprises in every version",
}
"""The kinds of what ``differences.toml`` explains."""
INTRODUCTION = """\
# The atlas of hooks

For each way to register a hook in PyTorch, and for each of the versions {versions}, this page shows when the hook
fires, with what, what it may change and when it stays silent. Nothing here is quoted from documentation: {programs}
small programs ran in each version that has what they use (Linux, CPU, Python {python}),
and you see what they printed.

Open a sentence to see its program and its output. The whole table is also a file:
<a href="atlas.json" download>atlas.json</a> ({size} kB); [how to read it](#the-file).
"""
CODE = "```python\n{}\n```"
OUTPUT = "```{{code-block}} text\n:class: atlas-output\n\n{}\n```"
PREFIX = re.compile(
    r"^torch\.(?:nn\.modules\.module\.|optim\.optimizer\.|autograd\.graph\.|autograd\.Variable\._execution_engine\."
    r"|_C\._autograd\.|utils\.checkpoint\.|nn\.|optim\.)?"
)
"""What one does not type after the usual imports."""


def write_page(source: Path) -> None:
    """Write the page among the sources of the site, and put the file where the site serves it."""
    (source / "atlas.md").write_text(make_page(read_atlas()), encoding="utf-8")
    (source / "extra").mkdir(exist_ok=True)
    shutil.copy(FILE, source / "extra")


def make_page(atlas: Table) -> str:
    """Make the Markdown of the page."""
    return "\n".join(_Page(atlas).parts())


class _Page:
    def __init__(self, atlas: Table) -> None:
        self.atlas = atlas
        self.versions = [version["torch"] for version in atlas["versions"]]
        self.changes = find_changes(atlas)

    def parts(self) -> Iterator[str]:
        yield INTRODUCTION.format(
            versions=" · ".join(self.versions),
            programs=sum(len(entry["situations"]) for entry in self.atlas["entries"]),
            python=self.atlas["versions"][-1]["python"],
            size=FILE.stat().st_size // 1000,
        )
        yield "## Where versions differ\n"
        for kind, title in KINDS.items():
            yield f"### {title}\n"
            yield from (self.explain(one) for one in self.atlas["differences"] if one["kind"] == kind)
        yield from self.overview()
        for group, entries in itertools.groupby(self.atlas["entries"], lambda entry: entry["key"].partition("/")[0]):
            yield f"## {GROUPS[group]}\n"
            for entry in entries:
                yield from self.section(entry)
        _, heading, text = FILE.with_name("README.md").read_text(encoding="utf-8").partition("## The file\n")
        yield heading + text

    def explain(self, difference: Table) -> str:
        pairs = {pair for place in difference["places"] for pair in self.changes.get(place, [])}
        ordered = sorted(pairs, key=lambda pair: sort_key(pair[0]))
        between = " and ".join(f"between {old} and {new}" for old, new in ordered)
        when = f" (changed {between})" if between else ""
        lines = [f"**{difference['title']}**{when}", "", difference["what"].strip(), ""]
        if difference["meaning"]:
            lines += [f"*For your hook:* {difference['meaning'].strip()}", ""]
        shown = " · ".join(f"[{_name_place(place)}](#{_anchor(place)})" for place in difference["places"])
        return "\n".join([*lines, f"Programs: {shown}", ""])

    def overview(self) -> Iterator[str]:
        yield "## Overview\n"
        yield "Each cell compares a version with the one to its left: *same*, or ≠ and how many situations differ.\n"
        yield "| Way to register | " + " | ".join(self.versions) + " |"
        yield "| --- |" + " --- |" * len(self.versions)
        for entry in self.atlas["entries"]:
            first = "present" if self.versions[0] in entry["exists"] else "absent"
            cells = [first, *(self.compare(entry, *pair) for pair in itertools.pairwise(self.versions))]
            yield f"| [`{short_name(entry)}`](#{_anchor(entry['key'])}) | " + " | ".join(cells) + " |"
        yield ""

    def compare(self, entry: Table, old: str, new: str) -> str:
        if new not in entry["exists"]:
            return "absent"
        if old not in entry["exists"]:
            return "**new**"
        own = [pairs for place, pairs in self.changes.items() if place.startswith(f"{entry['key']}#")]
        count = sum((old, new) in pairs for pairs in own)
        return f"**≠ {count}**" if count else "same"

    def section(self, entry: Table) -> Iterator[str]:
        yield f"({_anchor(entry['key'])})=\n### `{short_name(entry)}`\n"
        yield f"{entry['summary']}\n"
        if entry["registers"]:
            yield " · ".join([f"`{entry['api']}`", *self.signatures(entry)]) + "\n"
        for difference in self.atlas["differences"]:
            is_shown_here = any(place.startswith(f"{entry['key']}#") for place in difference["places"])
            if is_shown_here and difference["kind"] in ("behaviour", "interface"):
                yield f"**Versions differ.** {difference['what'].strip()}\n"
        if entry["preamble"] != "import torch":
            yield _fold("Each program begins with", CODE.format(entry["preamble"]))
        for question, title in self.atlas["questions"].items():
            asked = [situation for situation in entry["situations"] if situation["question"] == question]
            if asked:
                yield f"**{title}**\n"
            yield from (self.situation(f"{entry['key']}#{one['key']}", one) for one in asked)

    def signatures(self, entry: Table) -> Iterator[str]:
        for group in entry["signatures"]:
            where = "" if group["versions"] == entry["exists"] else f" in {', '.join(group['versions'])}"
            yield f"`{group['text']}`{where}"
        if entry["exists"] != self.versions:
            yield f"only in {', '.join(entry['exists'])}"

    def situation(self, place: str, situation: Table) -> str:
        parts = [f"({_anchor(place)})=\n{CODE.format(situation['code'])}"]
        for group in situation["results"]:
            every = group["versions"] == self.versions
            parts.append("In every version:" if every else f"In {', '.join(group['versions'])}:")
            parts.append(OUTPUT.format("\n".join(map(_write_event, group["events"])) or "(nothing)"))
        mark = ' <span class="atlas-differs">versions differ</span>' if place in self.changes else ""
        return _fold(_inline_code(situation["text"]) + mark, *parts)


def short_name(entry: Table) -> str:
    """Shorten a dotted name to what one types after the usual imports; two ways with one name get their mode."""
    mode = {"multi_grad_all": '(mode="all")', "multi_grad_any": '(mode="any")'}.get(entry["key"].split("/")[1], "")
    return PREFIX.sub("", entry["api"]) + mode


def _name_place(place: str) -> str:
    """Name a place of the atlas in a link: the way to register, and the situation."""
    key, _, situation = place.partition("#")
    words = situation.partition(".")[2].replace("_", " ")
    return f"`{key.partition('/')[2]}`" + (f" {words}" if words else "")


def _anchor(place: str) -> str:
    """Name the part of the page that shows a place of the atlas."""
    return "atlas-" + re.sub(r"[^a-z0-9]", "-", place.removesuffix("#exists").removesuffix("#signature"))


def _write_event(event: Table) -> str:
    """Write what happened as a line of output, or several lines if torch wrote several."""
    if "printed" in event:
        return str(event["printed"])
    (kind, name), (_, text) = event.items()
    return f"{name}: {text}" if kind != "crash" else f"{name}: {text}."


def _fold(summary: str, *parts: str) -> str:
    """Make Markdown of what opens with a click."""
    return "\n\n".join([f'<details class="atlas"><summary>{summary}</summary>', *parts, "</details>\n"])


def _inline_code(text: str) -> str:
    """Turn `code` into HTML, as Markdown is not read inside a summary."""
    pieces = escape(text).split("`")
    return "".join(f"<code>{piece}</code>" if number % 2 else piece for number, piece in enumerate(pieces))
