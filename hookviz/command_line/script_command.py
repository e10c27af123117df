"""The command ``run``: run a script as Python would, record it, and report what was found."""

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hookviz.api.trace import Trace, data_of
from hookviz.command_line.command_table import add_command
from hookviz.command_line.console import AddParser, ExitStatus, choose_status, write_line
from hookviz.command_line.program import program_environment, run_program
from hookviz.command_line.table_output import name_options, name_options_in
from hookviz.support.messages import _
from hookviz.trace.trace import describe_counts

if TYPE_CHECKING:
    from hookviz.recorder.record_entry import RecordBlock

RECORD_OPTIONS = ("every", "keep", "until", "on_trouble", "statistics", "cuts", "histograms", "compiled")
"""The options that ``run`` passes to ``hookviz.record``: all but the models and names, which a script makes."""


def add_run_command(add_parser: AddParser) -> None:
    """Add the command by ``add_parser``, the method of argparse's subparsers."""
    more = _(
        "The script runs as python would run it, and the findings go to standard error. The exit status is that of "
        "the script if it is not 0; else 2 if a file cannot be written; else, with --check, 1 for a warning or an "
        "error and 2 if nothing was recorded; else 0. Only the main thread's backward passes are recorded, and a "
        "process that is killed saves nothing."
    )
    command = add_command(add_parser, "run", _run_recorded, more)
    command.usage = _("hookviz run [options] script.py [arguments of the script]")
    _add_file_options(command)
    _add_record_options(command)
    command.add_argument(
        "--check",
        action="store_true",
        help=_("exit with status 1 if a warning or an error is found, and 2 if nothing was recorded"),
    )
    command.add_argument("-m", action="store_true", dest="is_module", help=_("run a module, as python -m does"))
    command.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="…",
        help=_("the script and its arguments; options of hookviz come before it"),
    )


def _parse_value(example: str, text: str) -> str:
    """Parse the value of an option; a script is none, but what stands behind an option without its value."""
    if text.endswith(".py"):
        said = _("{script} was taken as the value of this option. Write: {example} {script}")
        raise argparse.ArgumentTypeError(said.format(script=text, example=example))
    return text


def _parse_file(example: str, text: str) -> Path:
    """Parse the file that an option writes."""
    return Path(_parse_value(example, text))


def _add_file_options(command: argparse.ArgumentParser) -> None:
    """Add the options that name a file to write."""
    command.add_argument(
        "--record",
        type=partial(_parse_file, "--record pass.json"),
        metavar="FILE",
        help=_("save what was recorded as a trace, which the other commands read, also if the script fails"),
    )
    command.add_argument(
        "--page",
        type=partial(_parse_file, "--page pass.html"),
        metavar="FILE",
        help=_("write what was recorded as a page that plays without Python, also if the script fails"),
    )
    command.add_argument(
        "--on-trouble",
        type=partial(_parse_file, "--on-trouble crash.html"),
        metavar="FILE",
        help=_(
            "write a page (.html) or a trace (.json) only if the script raises, or if --until stops the recording, "
            "and then at once"
        ),
    )


def _add_record_options(command: argparse.ArgumentParser) -> None:
    """Add the options of ``hookviz.record``."""
    command.add_argument(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help=_("record the first backward pass and every N-th one after it (default: each one)"),
    )
    command.add_argument("--keep", type=int, metavar="N", help=_("keep only the last N recorded passes"))
    command.add_argument(
        "--until",
        type=partial(_parse_value, "--until nan"),
        choices=("nan",),
        help=_("stop recording after the first pass with NaN or Inf; the script runs on"),
    )
    command.add_argument(
        "--statistics",
        type=partial(_parse_value, "--statistics norm"),
        choices=("all", "norm"),
        help=_(
            "what to read of large tensors: all statistics, or only the norm, which costs about half as "
            "much (without it: all, but of very large or very many ones the norm)"
        ),
    )
    command.add_argument(
        "--cuts",
        action="store_true",
        help=_("follow each op, and name the line that cuts a parameter off from the loss"),
    )
    command.add_argument(
        "--histograms",
        action="store_true",
        help=_("also read how the numbers of gradients, weights and outputs are distributed, for trace.plot"),
    )
    command.add_argument(
        "--compiled",
        type=partial(_parse_value, "--compiled eager"),
        choices=("eager",),
        help=_("run compiled code eagerly while it is recorded, to see the hooks inside"),
    )


def _run_recorded(options: argparse.Namespace) -> int:
    """Run and record a program; its own exit status counts first."""
    from hookviz import record  # without torch it raises an ImportError that says so

    program = options.program[1:] if options.program[:1] == ["--"] else options.program
    if not program:
        options.parser.error(_("name the script to run, such as hookviz run train.py"))
    if not options.is_module:
        _check_script(program[0])
    for path in (options.record, options.page):
        _check_folder(path)
    process = os.getpid()
    with program_environment(program, options.is_module):
        block = record(**{name: getattr(options, name) for name in RECORD_OPTIONS})
        from hookviz.recorder.open_recordings import give_way

        with block as trace:
            recording = give_way()
            status = run_program(program, options.is_module, partial(_end, block))
        if os.getpid() != process:  # a child that the program forked has come to its end here
            raise SystemExit(status)
    found = _report_own_recording(options) if recording.has_given_way else _report_trace(trace, options)
    return status or found


def _check_script(name: str) -> None:
    """Check that the program is not a file that hookviz wrote.

    Raises:
        ValueError: it is one.
    """
    if name.endswith(".json"):
        raise ValueError(_("{name} is a trace: hookviz findings {name}").format(name=name))
    if name.endswith(".html"):
        raise ValueError(_("{name} is a page: open it in a browser.").format(name=name))


def _end(block: "RecordBlock", error: BaseException | None = None) -> None:
    """End the recording when the program ends; an exception does not leave the block, so it is written here."""
    block.end(error)
    block.write_exception(error)


def _check_folder(path: Path | None) -> None:
    """Check before a long run that a file can be written after it.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if path is not None and not path.absolute().parent.is_dir():
        raise FileNotFoundError(
            _("{path} cannot be written: there is no folder {folder}.").format(folder=path.parent, path=path)
        )


def _report_own_recording(options: argparse.Namespace) -> int:
    """Say that the program recorded itself, so that nothing is known here; return the exit status."""
    sys.stdout.flush()
    text = _(
        "The program records itself with hookviz, and one recording is open at a time: this run ended its own. "
        "Run the program with python, or without its recording."
    )
    write_line(text, sys.stderr)
    return ExitStatus.FAILED if options.check or options.record or options.page else ExitStatus.GOOD


def _report_trace(trace: Trace, options: argparse.Namespace) -> int:
    """Save what was recorded and write the findings to standard error; return the exit status."""
    sys.stdout.flush()
    notes = [
        note.text for note in data_of(trace).remarks if note.fact not in ("trace.empty", "raised")
    ]  # these are about the with statement
    for line in (
        _("hookviz recorded {counts}.").format(counts=describe_counts(data_of(trace)))
        if trace.steps
        else _("hookviz recorded nothing: the script ran no backward pass in its main thread, and called no module."),
        *map(name_options, notes),
    ):
        write_line(line, sys.stderr)
    is_written = [_write(trace.save, options.record), _write(trace.to_html, options.page)]
    status = _write_findings(trace) if trace.steps else ExitStatus.FAILED
    if not all(is_written):
        return ExitStatus.FAILED
    return status if options.check else ExitStatus.GOOD


def _write_findings(trace: Trace) -> ExitStatus:
    findings = trace.findings
    for line in name_options_in(findings).lines():
        write_line(line, sys.stderr)
    return choose_status(finding.severity for finding in findings)


def _write(write: Callable[[Path], None], path: Path | None) -> bool:
    """Write a file, if one was asked for; return False if that failed, after a message."""
    if path is None:
        return True
    try:
        write(path)
    except (OSError, ValueError) as error:
        write_line(f"hookviz: {error}", sys.stderr)
        return False
    write_line(_("{path} is written.").format(path=path), sys.stderr)
    return True
