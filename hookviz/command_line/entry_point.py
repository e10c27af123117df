"""The function that runs a command, and the parser of its arguments."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.resources import files

from hookviz.command_line.command_table import COMMANDS, add_command, make_overview
from hookviz.command_line.console import AddParser, Command, ExitStatus, write_line
from hookviz.command_line.doctor_command import add_doctor_command
from hookviz.command_line.report_types import REPORTS, make_report_schema
from hookviz.command_line.script_command import add_run_command
from hookviz.command_line.table_output import add_json_option, write_json
from hookviz.command_line.trace_commands import add_trace_commands
from hookviz.support.messages import _


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; an error is printed in one line, without a traceback.

    Without arguments, it prints an overview of the commands.

    >>> main(["page", "nowhere.json"])
    2
    """
    given = sys.argv[1:] if arguments is None else arguments
    if not given:
        write_line(make_overview())
        return int(ExitStatus.GOOD)
    options = _parse(given)
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


def _parse(given: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; an error shows the usage of the command that they name."""
    parser = build_parser()
    first = given[0]
    if not first.startswith("-") and first not in COMMANDS:
        parser.error(_explain_unknown(first))
    options, unknown = parser.parse_known_args(given)
    if unknown:
        options.fail(_("unrecognized arguments: {arguments}").format(arguments=" ".join(unknown)))
    return options


def _explain_unknown(name: str) -> str:
    """Say what to write in place of a command that there is not."""
    if name.endswith(".py"):
        return _("{name} is a script. To record it: hookviz run {name}").format(name=name)
    if name.endswith(".json"):
        return _("{name} is not a command. To see what is wrong in a trace: hookviz findings {name}").format(name=name)
    return _("there is no command {name}; hookviz without arguments lists all").format(name=name)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands; the page of the command line in the reference is made from it, too."""
    parser = argparse.ArgumentParser(
        prog="hookviz",
        usage=_("hookviz command [options]"),
        description=make_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command", help=argparse.SUPPRESS, prog="hookviz")
    add_run_command(commands.add_parser)
    add_trace_commands(commands.add_parser)
    add_doctor_command(commands.add_parser)
    _add_other_commands(commands.add_parser)
    return parser


def _add_other_commands(add_parser: AddParser) -> None:
    """Add the commands that need neither a trace nor a program."""
    status = _("The exit status is 0 if all is as expected, and 1 if something differs.")
    add_json_option(add_command(add_parser, "check", _check_torch, status))
    add_command(add_parser, "schema", _print_schema).add_argument(
        "what",
        nargs="?",
        choices=("trace", *REPORTS),
        default="trace",
        help=_("trace for saved traces (the default), or the command whose output with --json it describes"),
    )
    add_command(add_parser, "for-agents", _print_page_for_agents)


def _print_schema(options: argparse.Namespace) -> int:
    """Print the JSON Schema of trace files, or of what a command prints for programs."""
    from hookviz.storage.schema import make_schema

    write_json(make_schema() if options.what == "trace" else make_report_schema(options.what))
    return ExitStatus.GOOD


def _check_torch(options: argparse.Namespace) -> int:
    """Print where the installed PyTorch differs from what hookviz relies on."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        raise ImportError(
            _(
                "PyTorch is not installed, so there is nothing to check. hookviz needs it to record; saved "
                "traces play without it."
            )
        ) from None
    from hookviz.command_line.reports import report_check
    from hookviz.recorder.compatibility import check_torch

    report = check_torch()
    if options.json:
        write_json(report_check(report))
    else:
        print("\n".join(report.lines()))
    return ExitStatus.FOUND if report.mismatches else ExitStatus.GOOD


def _print_page_for_agents(_options: argparse.Namespace) -> int:
    write_line(files(__package__).joinpath("for_agents.md").read_text(encoding="utf-8").rstrip())
    return ExitStatus.GOOD
