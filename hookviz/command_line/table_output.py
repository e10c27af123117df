"""A table as a command prints it: for a person, as Markdown for a pull request, or as JSON for a program."""

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookviz.command_line.console import is_utf8, write_line
from hookviz.support.messages import _
from hookviz.support.printable import make_printable
from hookviz.support.table import Table
from hookviz.support.terminal_text import find_terminal_width, wrap

MIN_WIDTH = 40
"""The shortest longest line of a table, in columns."""
_RECORD_OPTION = re.compile(r'\brecord\((\w+)=(?:True|"?(\w+)"?)\)')
"""A call of ``record`` that stands for an option of ``hookviz run``."""
_RECORD_BLOCK = re.compile(r'"with hookviz\.record\(\w*\) as trace:"')
_MARKS = re.compile(r"[\\`*_{}\[\]<>|~&#]")
"""What Markdown takes for a mark, also in the middle of a line."""


def add_output_options(command: argparse.ArgumentParser) -> None:
    """Add the options of a command that prints a table."""
    which = command.add_mutually_exclusive_group()
    width = _("the longest line, in characters, at least {least} (default: the width of the terminal)")
    which.add_argument("--width", type=parse_width, help=width.format(least=MIN_WIDTH))
    add_json_option(which)
    which.add_argument("--markdown", action="store_true", help=_("print Markdown, for a pull request or an issue"))


def add_json_option(command: "argparse._ActionsContainer") -> None:
    """Add the option for the output that programs read."""
    command.add_argument(
        "--json", action="store_true", help=_("print JSON for a program; hookviz schema describes it for each command")
    )


def parse_width(text: str) -> int:
    """Parse the length of the longest line.

    >>> parse_width("80")
    80
    """
    if not text.isdecimal() or int(text) < MIN_WIDTH:
        raise argparse.ArgumentTypeError(
            _("{text} is not a width: give a whole number of at least {least}.").format(text=text, least=MIN_WIDTH)
        )
    return int(text)


def write_table(
    table: Table[Any], options: argparse.Namespace, above: Sequence[str], report: Callable[[], Mapping[str, Any]]
) -> None:
    """Write a table and the sentences above it in the form that ``options`` ask for; ``report`` makes the JSON."""
    if options.json:
        write_json(report())
        return
    table, above = name_options_in(table), [name_options(text) for text in above]
    if options.markdown:
        lines = write_markdown(table, above)
    else:
        width = options.width or find_terminal_width()
        lines = [line for text in above for line in wrap(text, width)] + table.lines(width)
        lines += [table.caption] if len(table) and table.caption else []
    for line in lines:
        write_line(line)


def name_options_in(table: Table[Any]) -> Table[Sequence[str]]:
    """Return a table whose texts also name the options of the command line."""
    caption = name_options(table.caption)
    rows = [[name_options(cell) for cell in cells] for cells in table.texts()]
    return Table(rows, table.head, lambda cells: cells, caption, caption)


def name_options(text: str) -> str:
    """Return a text that also says what to write in a terminal where it names a call of ``record``.

    >>> name_options('Record it with record(compiled="eager").')
    'Record it with record(compiled="eager") or hookviz run --compiled eager.'
    """

    def name_option(call: re.Match[str]) -> str:
        option = f"--{call[1].replace('_', '-')} {call[2] or ''}".rstrip()
        return _("{call} or hookviz run {option}").format(call=call[0], option=option)

    text = _RECORD_OPTION.sub(name_option, text)
    return _RECORD_BLOCK.sub(lambda call: _("{call} or hookviz run train.py").format(call=call[0]), text)


def write_json(report: Mapping[str, Any]) -> None:
    """Write what a program reads to standard output; what the console lacks is written as JSON's escapes."""
    print(json.dumps(report, indent=1, ensure_ascii=not is_utf8(sys.stdout), allow_nan=False))


def write_markdown(table: Table[Any], above: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table in Markdown as GitHub shows it: names and code stay as they are.

    >>> write_markdown(Table([("a|b", "__init__")], ("hook", "on"), lambda row: row))
    ['| hook | on |', '| --- | --- |', '| a\\\\|b | \\\\_\\\\_init\\\\_\\\\_ |']
    """
    blocks = [[escape_markdown(text)] for text in above]
    if len(table):
        head, *rows = ([escape_markdown(cell) for cell in row] for row in (table.head, *table.texts()))
        blocks.append([f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)])
    if table.caption:
        blocks.append([escape_markdown(table.caption)])
    return [line for number, block in enumerate(blocks) for line in ([""] if number else []) + block]


def escape_markdown(text: str) -> str:
    """Return a text on one line, with a backslash before all that Markdown would take for a mark."""
    return _MARKS.sub(lambda mark: f"\\{mark[0]}", make_printable(text))
