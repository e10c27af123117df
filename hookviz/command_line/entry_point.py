"""The function that runs a command, and the parser of its arguments."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from hookviz.command_line.console import Command, ExitStatus
from hookviz.command_line.script_command import add_run_command
from hookviz.command_line.trace_commands import add_trace_commands
from hookviz.support.messages import _


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; an error is printed in one line, without a traceback.

    >>> main(["page", "nowhere.json"])
    2
    """
    options = build_parser().parse_args(arguments)
    command: Command = options.run
    try:
        status = int(command(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # nobody reads on, as in ``| head``; Python must not flush again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitStatus.FAILED)
    except (ImportError, IndexError, OSError, ValueError) as error:
        print(f"hookviz: {error}", file=sys.stderr)
        return int(ExitStatus.FAILED)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands; the page of the command line in the reference is made from it, too."""
    parser = argparse.ArgumentParser(prog="python -m hookviz", description=_("See what PyTorch's hooks do."))
    commands = parser.add_subparsers(required=True, metavar="command")
    add_run_command(commands.add_parser)
    add_trace_commands(commands.add_parser)
    schema = _("print the JSON Schema of saved traces, for other programs")
    commands.add_parser("schema", help=schema, description=schema).set_defaults(run=_print_schema)
    check = _("check whether the installed PyTorch works as hookviz expects")
    commands.add_parser("check", help=check, description=check).set_defaults(run=_check_torch)
    return parser


def _print_schema(_options: argparse.Namespace) -> int:
    """Print the JSON Schema of trace files."""
    from hookviz.storage.schema import make_schema

    print(json.dumps(make_schema(), indent=1))
    return ExitStatus.GOOD


def _check_torch(_options: argparse.Namespace) -> int:
    """Print where the installed PyTorch differs from what hookviz relies on."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        print(
            _(
                "PyTorch is not installed, so there is nothing to check. hookviz needs it to record; saved "
                "traces play without it."
            )
        )
        return ExitStatus.FOUND
    from hookviz.recorder.compatibility import check_torch

    report = check_torch()
    print("\n".join(report.lines()))
    return ExitStatus.FOUND if report.mismatches else ExitStatus.GOOD
