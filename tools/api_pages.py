"""Write the sources of the API reference: an index by task, a page for each public name, and the commands."""

import argparse
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from hookviz.command_line.entry_point import build_parser
from tools.public_api import MODULES, OPERATORS, PublicName, find_public_names

GROUPS: Mapping[str, Sequence[str]] = {
    "Record": ("record", "Trace", "RecordBlock", "HookvizWarning"),
    "Look": (
        *("Trace.steps", "Trace.firings", "Trace.text", "Trace.player", "Trace.figure", "draw", "render"),
        *("Step", "Steps", "Value", "Hook", "Part", "Table", "Player", "HookText", "Figure", "Rendered"),
    ),
    "Ask why": (
        *("Trace.findings", "Trace.troubles", "Trace.unfired", "Trace.missing_gradients", "Trace.why", "Trace.hooks"),
        *("Finding", "UnfiredHook", "MissingGradient", "Reason", "HookCount"),
    ),
    "Compare": ("whatif", "Trace.diff", "WhatIf", "Comparison", "Difference"),
    "Check your code": (
        *("doctor", "hooks", "testing.assert_gradients_reach", "testing.assert_hooks_fire"),
        *("StaticFinding", "Census", "Change"),
    ),
    "Choose the language": ("language",),
    "Save": ("Trace.save", "load", "Trace.to_html", "Trace.animate", "Trace.to_records", "Trace.to_pandas"),
    "Course": (
        *("course.check", "course.report", "course.review", "course.quiz"),
        *("Verdict", "Quiz", "QuizQuestion", "AnswerFile", "Review", "Question", "Choice"),
    ),
}
"""Task → the public names, and the members of ``Trace``, that serve it."""
PAGES = {"Check your code": "pytest_plugin", "Save": "command_line"}
"""Task → another page of the reference that serves it."""
MANY_MEMBERS = 8
"""A type with so many members gets a table of them at the top of its page."""
INDEX_HEAD = """\
API
===

.. meta::
   :description: Every public function and type of hookviz, sorted by what you want to do.

.. currentmodule:: hookviz

Everything public, sorted by what you want to do: each name has a page with its arguments, what it raises, and an
example. ``import hookviz as hv`` gives you the functions, and ``from hookviz.course import check`` one of the course;
the types are what these return. In Python, steps, passes and indexes count from 0; on a screen, everything counts
from 1.

"""
COMMAND_HEAD = """\
Command line
============

.. meta::
   :description: The commands of python -m hookviz: record a script, list what is wrong, make a page or an animation.

``python -m hookviz`` records a script without a change to it, and shows saved traces: no notebook is needed.

.. code-block:: console

   python -m hookviz run --record pass.json --page pass.html --keep 10 train.py --lr 0.1
   python -m hookviz unfired pass.json

"""


def write_api_pages(folder: Path) -> None:
    """Write the sources of all pages into ``folder``, which already has the page of the pytest plugin."""
    names = find_public_names()
    by_address = {public.name: public for public in names.values()}
    for public in names.values():
        page = folder / f"{page_name(public)}.rst"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(write_page(public, by_address), encoding="utf-8")
    (folder / "command_line.rst").write_text(write_commands(build_parser()), encoding="utf-8")
    (folder / "index.rst").write_text(write_index(names), encoding="utf-8")


def page_name(public: PublicName) -> str:
    """The path of a page in the folder of the reference; ``whatif`` and ``WhatIf`` may not share a folder."""
    return f"{'types' if public.is_type else 'functions'}/{public.name}"


def write_page(public: PublicName, names: Mapping[str, PublicName]) -> str:
    """Write the page of a public name; ``names`` are all of them by their own names."""
    # A type that no module exports is nothing to import, so its page shows the name alone.
    is_exported = public.address.removesuffix(f".{public.name}") in {module.__name__ for module in MODULES}
    title = public.address if is_exported else public.name
    description = " ".join((inspect.getdoc(public.what) or "").partition("\n\n")[0].replace("``", "").split())
    lines = [title, "=" * len(title), "", ".. meta::", f"   :description: {description}", ""]
    if not public.is_type:
        return "\n".join([*lines, f".. autofunction:: {public.address}", ""])
    if public.sources:
        lines += [f"You get one from {', '.join(map(_link_source, public.sources))}.", ""]
    bases = [names[base.__name__] for base in public.what.__mro__[1:] if _is_named(base, names)]
    inherited = {member for base in bases for member in base.members}
    own = [member for member in public.members if member not in inherited]
    if len(own) >= MANY_MEMBERS:
        module = public.address.removesuffix(f".{public.name}")
        lines += [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [*(f"   ~{public.name}.{member}" for member in _sort_by_task(public.name, own)), ""]
    lines += [f".. autoclass:: {public.address}", *([f"   :members: {', '.join(own)}"] if own else []), ""]
    lines += [f"It also has everything that a :py:class:`~{base.address}` has." for base in bases[:1]]
    return "\n".join([*lines, ""])


def _sort_by_task(owner: str, members: Sequence[str]) -> list[str]:
    """Sort members as the index does, which lists those of ``Trace``; those that it does not list come last."""
    listed = [name for names in GROUPS.values() for name in names]
    return sorted(members, key=lambda member: listed.index(name) if (name := f"{owner}.{member}") in listed else 999)


def _is_named(base: type, names: Mapping[str, PublicName]) -> bool:
    return base.__name__ in names and names[base.__name__].what is base


def _link_source(source: str) -> str:
    """Link a function or member that returns a type; an operator is written as a user writes it."""
    owner, _, member = source.rpartition(".")
    name = owner.rpartition(".")[2]
    if member in OPERATORS:
        return f":py:obj:`{name} <{owner}>` (``{OPERATORS[member]}``)"
    return f":py:obj:`{name}.{member} <{source}>`"


def write_index(names: Mapping[str, PublicName]) -> str:
    """Write the index: for each task its functions and types with their first sentences, and the menu."""
    by_name = {_short(public): public for public in names.values()}
    parts = [INDEX_HEAD]
    for task, members in GROUPS.items():
        parts += [task, "-" * len(task), "", ".. autosummary::", "   :nosignatures:", ""]
        parts += [f"   {_address(member, by_name)}" for member in members]
        parts += ["", *([f"See also: :doc:`{PAGES[task]}`.", ""] if task in PAGES else [])]
    listed = sorted(by_name, key=lambda name: (by_name[name].is_type, "." in name, name.casefold()))
    menu = [*(f"{name} <{page_name(by_name[name])}>" for name in listed), "command_line", "pytest_plugin"]
    return "\n".join([*parts, ".. toctree::", "   :hidden:", "", *(f"   {page}" for page in menu), ""])


def _short(public: PublicName) -> str:
    """The name without ``hookviz``: ``testing.assert_hooks_fire``, or ``Table`` for a type that no module exports."""
    return public.name if public.is_type else public.address.removeprefix("hookviz.")


def _address(member: str, names: Mapping[str, PublicName]) -> str:
    """Where autosummary finds a name of a group from ``hookviz``; ``~`` makes it show the last part alone."""
    if member not in names or not names[member].is_type:
        return member
    return f"~{names[member].address.removeprefix('hookviz.')}"


def write_commands(parser: argparse.ArgumentParser) -> str:
    """Write the page of the command line: a section for each command with its options and its exit status."""
    [commands] = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return "\n".join([COMMAND_HEAD, *(line for name in commands.choices for line in _command(commands.choices[name]))])


def _command(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the lines of the section of a command."""
    yield from ("", parser.prog.rpartition(" ")[2], "-" * len(parser.prog), "", _sentence(parser.description or ""), "")
    usage = parser.format_usage().removeprefix("usage: ").split()
    yield from (".. code-block:: console", "", f"   {' '.join(usage)}", "", f".. program:: {parser.prog}", "")
    for action in parser._actions:
        if action.help and action.help != argparse.SUPPRESS and action.dest != "help":
            yield from (f".. option:: {_name_option(action)}", "")
            yield from (f"   {_sentence(parser._get_formatter()._expand_help(action))}", "")
    if parser.epilog:
        yield from (_sentence(parser.epilog), "")


def _name_option(action: argparse.Action) -> str:
    """Name an option with its value, or an argument."""
    if not action.option_strings:
        return action.dest
    choices = f"{{{','.join(action.choices)}}}" if action.choices else ""
    value = "" if action.nargs == 0 else f" {action.metavar or choices or action.dest.upper()}"
    return ", ".join(f"{option}{value}" for option in action.option_strings)


def _sentence(text: str) -> str:
    """Write a line of help, which begins in lower case, as a sentence of a page."""
    text = re.sub(r"(?<![\w-])--?[a-z][\w-]*", r"``\g<0>``", text)
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."
