"""The commands for saved traces: ``findings``, ``hooks``, ``text``, ``page``, ``animate`` and ``diff``."""

import argparse
import sys
from pathlib import Path

from hookviz.analysis.text_timeline import MAX_PRINTED_STEPS, choose_printed_steps, make_timeline
from hookviz.api.trace import Trace, data_of, load
from hookviz.command_line.command_table import add_command
from hookviz.command_line.console import AddParser, Command, ExitStatus, choose_status, write_timeline
from hookviz.command_line.reports import report_comparison, report_findings, report_hooks, report_steps
from hookviz.command_line.table_output import add_json_option, add_output_options, write_json, write_table
from hookviz.player.html_page import page
from hookviz.support.messages import N_, _, pluralize

TRACE_COMMANDS = ("findings", "hooks", "text", "page", "animate", "diff")
"""The commands that read a saved trace."""
_NOT_A_RANGE = N_("{text} is not a range of steps: give two numbers such as 3-10.")


def add_trace_commands(add_parser: AddParser) -> None:
    """Add the commands by ``add_parser``, the method of argparse's subparsers."""
    worse = _("The exit status is 0 if nothing worse than a remark was found, 1 for a warning or an error.")
    add_output_options(_add_command(add_parser, "findings", _write_findings, worse))
    add_output_options(_add_command(add_parser, "hooks", _write_hooks))
    _add_text_options(_add_command(add_parser, "text", _write_text))
    _add_page_options(_add_command(add_parser, "page", _write_page))
    _add_animate_options(_add_command(add_parser, "animate", _write_animation))
    differs = _("The exit status is 0 if no gradient differs, 1 if one does, 2 if the traces cannot be compared.")
    diff = _add_command(add_parser, "diff", _write_differences, differs)
    diff.add_argument("other", type=Path, help=_("the trace of the same program to compare with it"))
    add_output_options(diff)


def _add_command(add_parser: AddParser, name: str, run: Command, more: str | None = None) -> argparse.ArgumentParser:
    """Add a command that reads a saved trace."""
    command = add_command(add_parser, name, run, more)
    text = _("a trace: a file that hookviz run --record or trace.save(...) wrote")
    command.add_argument("trace", type=Path, help=text)
    return command


def read(path: Path, options: argparse.Namespace) -> Trace:
    """Load a saved trace.

    Raises:
        OSError, ValueError: as ``hookviz.load`` does; or it is a script, which has to be recorded first, a page, or
            ``-``.
    """
    if path.suffix == ".py" and options.command == "diff":
        text = _(
            "{path} is a script, and diff compares two traces. Record both runs: "
            "hookviz run --record good.json {path}, after the change "
            "hookviz run --record bad.json {path}, then: hookviz diff good.json bad.json"
        )
        raise ValueError(text.format(path=path))
    if path.suffix == ".py":
        text = _(
            "{path} is a script. Record it first: hookviz run --record pass.json {path}, then: "
            "hookviz {command} pass.json"
        )
        raise ValueError(text.format(path=path, command=options.command))
    if path.suffix == ".html":
        text = _(
            "{path} is a page: open it in a browser. The commands read the trace that --record pass.json or "
            "--on-trouble pass.json writes."
        )
        raise ValueError(text.format(path=path))
    if str(path) == "-":
        raise ValueError(_("hookviz does not read standard input: name the file of a trace."))
    if path.is_dir():
        raise IsADirectoryError(_("{path} is a folder: name a file in it.").format(path=path))
    if not path.exists():
        text = _("There is no file {path}: check the name, or write a trace there with hookviz run --record {path}.")
        raise FileNotFoundError(text.format(path=path))
    return load(path)


def _add_page_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        help=_("the page to write, or - for standard output (default: the name of the trace, ending in .html)"),
    )
    command.add_argument("--title", help=_("the heading of the page"))
    command.add_argument(
        "--no-source",
        action="store_false",
        dest="source",
        help=_("leave out the source of hooks and the names of their files"),
    )
    command.add_argument("--no-values", action="store_false", dest="values", help=_("leave out the numbers of tensors"))


def _add_animate_options(command: argparse.ArgumentParser) -> None:
    width, seconds = 800, 1.5
    command.add_argument(
        "-o",
        "--output",
        type=Path,
        help=_("the animation to write: .gif, .webp or .png (default: the name of the trace, ending in .gif)"),
    )
    command.add_argument(
        "--steps",
        type=parse_range,
        help=_("the first and the last step to show, counted from 1, such as 3-10 (default: all)"),
    )
    command.add_argument(
        "--width", type=int, default=width, help=_("the width in pixels (default: {width})").format(width=width)
    )
    command.add_argument(
        "--seconds",
        type=float,
        default=seconds,
        help=_("how long each step is shown (default: {seconds})").format(seconds=seconds),
    )
    command.add_argument("--dark", action="store_true", help=_("light text on a dark background"))


def _add_text_options(command: argparse.ArgumentParser) -> None:
    which = command.add_mutually_exclusive_group()
    which.add_argument(
        "--steps",
        type=parse_range,
        help=_(
            "the first and the last step to show, counted from 1, such as 3-10 (default: the first and the last {half})"
        ).format(half=MAX_PRINTED_STEPS // 2),
    )
    which.add_argument("--all", action="store_true", help=_("show all steps"))
    how = command.add_mutually_exclusive_group()
    how.add_argument(
        "--width", type=int, help=_("the longest line, in characters (default: the width of the terminal)")
    )
    add_json_option(how)


def parse_range(text: str) -> range:
    """Parse two step numbers, counted from 1, as the steps between them, counted from 0.

    >>> parse_range("3-10"), parse_range("4")
    (range(2, 10), range(3, 4))
    """
    first, _ignored, last = text.partition("-")
    try:
        steps = range(int(first) - 1, int(last or first))
    except ValueError:
        raise argparse.ArgumentTypeError(_(_NOT_A_RANGE).format(text=text)) from None
    if steps.start < 0 or not steps:
        raise argparse.ArgumentTypeError(_(_NOT_A_RANGE).format(text=text))
    return steps


def _require_steps(trace: Trace, steps: range | None) -> None:
    """Check that ``trace`` has all ``steps``; the error counts from 1, as the command line does.

    Raises:
        IndexError: it lacks one.
    """
    count = len(trace.steps)
    if steps and 0 < count < steps.stop:
        raise IndexError(
            _("There is no step {step}: the trace has the steps 1 to {last}.").format(
                step=f"{max(steps.start, count) + 1:,}", last=f"{count:,}"
            )
        )


def _write_animation(options: argparse.Namespace) -> int:
    """Write a saved trace as an animation."""
    trace = read(options.trace, options)
    _require_steps(trace, options.steps)
    path = options.output or options.trace.with_suffix(".gif")
    trace.animate(path, steps=options.steps, width=options.width, seconds=options.seconds, dark=options.dark)
    count = len(trace.steps) if options.steps is None else len(options.steps)
    steps = pluralize(count, _("{count} step"), _("{count} steps"))
    print(_("{path} is written: {steps}.").format(path=path, steps=steps))
    return ExitStatus.GOOD


def _write_page(options: argparse.Namespace) -> int:
    """Write a saved trace as an HTML page to a file, or to standard output if the output is ``-``."""
    trace = read(options.trace, options)
    contents = {"source": options.source, "values": options.values}
    if options.output == "-":
        sys.stdout.buffer.write(page(data_of(trace), options.title, **contents).encode())
        return ExitStatus.GOOD
    path = options.trace.with_suffix(".html") if options.output is None else Path(options.output)
    trace.to_html(path, options.title, **contents)
    print(_("{path} is written: open it in a browser.").format(path=path))
    return ExitStatus.GOOD


def _write_text(options: argparse.Namespace) -> int:
    """Write a saved trace as a timeline to standard output."""
    trace = read(options.trace, options)
    _require_steps(trace, options.steps)
    if options.json:
        write_json(report_steps(trace, options.steps))
        return ExitStatus.GOOD
    steps = options.steps if options.steps or options.all else choose_printed_steps(data_of(trace))
    write_timeline(
        make_timeline(
            data_of(trace),
            steps,
            options.width,
            _("--all shows all {steps} steps, --steps 3-10 some of them.").format(steps=f"{len(trace.steps):,}"),
        )
    )
    return ExitStatus.GOOD


def _write_findings(options: argparse.Namespace) -> int:
    """Write the findings of a saved trace, and the notes on what could not be observed, to standard output."""
    trace = read(options.trace, options)
    findings = trace.findings
    write_table(findings, options, trace.notes, lambda: report_findings(trace))
    return choose_status(finding.severity for finding in findings)


def _write_hooks(options: argparse.Namespace) -> int:
    """Write all hooks of a saved trace, and the notes on what could not be observed, to standard output."""
    trace = read(options.trace, options)
    write_table(trace.hooks, options, trace.notes, lambda: report_hooks(trace))
    return ExitStatus.GOOD


def _write_differences(options: argparse.Namespace) -> int:
    """Write the gradients that differ between two saved traces to standard output."""
    this, other = (read(path, options) for path in (options.trace, options.other))
    found = this.diff(other)
    which = _("This trace is {this}, the other is {other}.").format(this=options.trace, other=options.other)
    write_table(found, options, [which, found.sentence] if found else [which], lambda: report_comparison(found))
    return ExitStatus.FOUND if found else ExitStatus.GOOD
