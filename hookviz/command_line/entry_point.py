"""The function that runs a command, and the parser of its arguments."""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from hookviz.command_line.conventions import Command, ExitStatus
from hookviz.command_line.script_command import add_run_command
from hookviz.command_line.trace_commands import add_trace_commands
from hookviz.support.messages import say


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
    parser = argparse.ArgumentParser(prog="python -m hookviz", description=say("cli.about"))
    commands = parser.add_subparsers(required=True, metavar="command")
    add_run_command(commands.add_parser)
    add_trace_commands(commands.add_parser)
    for name, run in (("schema", _print_schema), ("check", _check_torch)):
        command = commands.add_parser(name, help=say(f"cli.{name}"), description=say(f"cli.{name}"))
        command.set_defaults(run=run)
    return parser


def _print_schema(_: argparse.Namespace) -> int:
    """Print the JSON Schema of trace files."""
    from hookviz.storage.json_schema import make_schema

    print(json.dumps(make_schema(), indent=1))
    return ExitStatus.GOOD


def _check_torch(_: argparse.Namespace) -> int:
    """Print where the installed PyTorch differs from what hookviz relies on."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        print(say("torch.not_installed"))
        return ExitStatus.FOUND
    from hookviz.recorder.compatibility import check_torch

    report = check_torch()
    print("\n".join(report.lines()))
    return ExitStatus.FOUND if report.mismatches else ExitStatus.GOOD
