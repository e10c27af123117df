"""All commands, each with a line about it and an example, and the overview of them."""

import argparse
from typing import NamedTuple

from hookviz.command_line.console import AddParser, Command
from hookviz.support.messages import N_, _
from hookviz.support.terminal_text import measure_width, pad


class Entry(NamedTuple):
    """What the overview shows of a command."""

    about: str
    example: str


COMMANDS = {
    "run": Entry(N_("record a script, and print what is wrong"), "hookviz run --record pass.json train.py"),
    "findings": Entry(N_("print what is wrong in a trace, with causes"), "hookviz findings pass.json"),
    "hooks": Entry(N_("list all hooks: how often each fired, or why not"), "hookviz hooks pass.json"),
    "text": Entry(N_("print a trace as a timeline, one line per step"), "hookviz text pass.json --steps 3-10"),
    "page": Entry(N_("write a page that plays a trace in a browser"), "hookviz page pass.json -o pass.html"),
    "animate": Entry(N_("write an animation, for slides and chats"), "hookviz animate pass.json -o pass.gif"),
    "diff": Entry(N_("compare the gradients of two traces"), "hookviz diff good.json bad.json"),
    "doctor": Entry(N_("check a model or a hook without running it"), "hookviz doctor package.module:net"),
    "check": Entry(N_("check whether PyTorch works as hookviz expects"), "hookviz check"),
    "schema": Entry(N_("print a JSON Schema, for other programs"), "hookviz schema findings"),
    "for-agents": Entry(N_("print a page for coding agents that use hookviz"), "hookviz for-agents"),
}
"""Command → its entry, in the order in which one meets them."""


def add_command(add_parser: AddParser, name: str, run: Command, more: str | None = None) -> argparse.ArgumentParser:
    """Add a command by ``add_parser``, the method of argparse's subparsers; ``more`` ends its help."""
    command = add_parser(name, description=_(COMMANDS[name].about), epilog=more)
    command.set_defaults(run=run, command=name, parser=command)
    return command


def make_overview() -> str:
    """Make the overview: an example of each command, with what it does.

    >>> print(make_overview().splitlines()[2])
    hookviz run --record pass.json train.py  # record a script, and print what is wrong
    """
    width = max(measure_width(entry.example) for entry in COMMANDS.values())
    lines = [f"{pad(entry.example, width)}  # {_(entry.about)}" for entry in COMMANDS.values()]
    more = _("A command with --help lists its options, such as hookviz run --help.")
    return "\n".join([_("hookviz shows what PyTorch's hooks do."), "", *lines, "", more])
