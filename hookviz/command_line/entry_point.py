"""The function that runs a command, and the parser of its arguments."""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib.resources import files

from hookviz.command_line.command_table import COMMANDS, add_command, make_overview
from hookviz.command_line.console import AddParser, Command, ExitStatus, write_line
from hookviz.command_line.doctor_command import add_doctor_command
from hookviz.command_line.report_types import REPORTS, make_report_schema
from hookviz.command_line.script_command import add_run_command
from hookviz.command_line.table_output import add_json_option, write_json
from hookviz.command_line.trace_commands import TRACE_COMMANDS, add_trace_commands
from hookviz.support.messages import _, join_sentences
from hookviz.support.version import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; an error is printed in one line, without a traceback.

    Without arguments, it prints an overview of the commands.

    >>> main(["page", "nowhere.json"])
    2
    """
    given = sys.argv[1:] if arguments is None else arguments
    try:
        status = _run(given)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # nobody reads on, as in ``| head``; Python must not flush again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitStatus.FAILED)
    except (ImportError, IndexError, OSError, ValueError) as error:
        print(f"hookviz: {error}", file=sys.stderr)
        return int(ExitStatus.FAILED)


def _run(given: Sequence[str]) -> int:
    if not given:
        write_line(make_overview())
        return int(ExitStatus.GOOD)
    options = _parse(given)
    command: Command = options.run
    return int(command(options))


def _parse(given: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments; an error shows the usage of the command that they name."""
    parser = build_parser()
    first = given[0]
    if first not in {*COMMANDS, *parser._option_string_actions}:
        parser.error(_explain_unknown(first, parser))
    if len(given) == 1 and first in (*TRACE_COMMANDS, "doctor"):
        parser.parse_known_args([first, "", ""])[0].parser.error(_explain_missing(first))
    options, unknown = parser.parse_known_args(given)
    if unknown:
        options.parser.error(_explain_unknown_arguments(unknown, options.parser))
    return options


def _explain_missing(command: str) -> str:
    """Say what to give to a command that got no argument."""
    example = COMMANDS[command].example
    if command == "doctor":
        return _("name a model or a hook function, such as {example}").format(example=example)
    record = COMMANDS["run"].example
    return _("{command} reads a trace. To write one: {record}, then: {example}").format(
        command=command, record=record, example=example
    )


def _explain_unknown_arguments(unknown: Sequence[str], command: argparse.ArgumentParser) -> str:
    """Say what to write in place of arguments that a command does not have."""
    said = _("unrecognized arguments: {arguments}").format(arguments=" ".join(unknown))
    if "--json" in unknown and command.get_default("command") == "run":
        return join_sentences([f"{said}.", _("Use --record pass.json, then: hookviz findings --json pass.json")])
    return said + _suggest(unknown[0], command._option_string_actions)


def _suggest(name: str, known: Iterable[str]) -> str:
    """Return a question that names the known word nearest to ``name``, or nothing."""
    nearest = get_close_matches(name.partition("=")[0], known, n=1)
    return _("; did you mean {name}?").format(name=nearest[0]) if nearest else ""


def _explain_unknown(name: str, parser: argparse.ArgumentParser) -> str:
    """Say what to write in place of a command or an option that there is not."""
    if name.startswith("-"):
        return _("there is no option {name}").format(name=name) + _suggest(name, parser._option_string_actions)
    if name.endswith(".py"):
        return _("{name} is a script. To record it: hookviz run {name}").format(name=name)
    if name.endswith(".json"):
        return _("{name} is not a command. To see what is wrong in a trace: hookviz findings {name}").format(name=name)
    text = _("there is no command {name}; hookviz without arguments lists all").format(name=name)
    return text + _suggest(name, COMMANDS)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands; the page of the command line in the reference is made from it, too."""
    parser = argparse.ArgumentParser(
        prog="hookviz",
        usage=_("hookviz command [options]"),
        description=make_overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = _("print the version of hookviz")
    parser.add_argument("-V", "--version", action="version", version=f"hookviz {VERSION}", help=version)
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
