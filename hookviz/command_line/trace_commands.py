"""The commands for a saved trace: ``page``, ``animate``, ``text`` and ``findings``."""

import argparse
import sys
from pathlib import Path

from hookviz.analysis.text_timeline import MAX_PRINTED_STEPS, choose_printed_steps, make_timeline
from hookviz.api.trace import Trace, data_of, load
from hookviz.command_line.console import AddParser, Command, ExitStatus, report_findings, write_line, write_timeline
from hookviz.player.html_page import page
from hookviz.support.columns import find_terminal_width, wrap
from hookviz.support.messages import N_, _

_NOT_A_RANGE = N_("{text} is not a range of steps: give two numbers such as 3-10.")


MIN_WIDTH = 40
"""The shortest longest line of a table, in columns."""


def add_trace_commands(add_parser: AddParser) -> None:
    """Add the commands by ``add_parser``, the method of argparse's subparsers."""
    _add_page_options(
        _add_command(
            add_parser, "page", _("write a page that plays a trace, without Python, server or network"), _write_page
        )
    )
    _add_animate_options(
        _add_command(add_parser, "animate", _("write an animation of a trace, for slides and chats"), _write_animation)
    )
    _add_text_options(
        _add_command(add_parser, "text", _("print a trace as a timeline: one line per step"), _write_text)
    )
    findings = _(
        "print what is wrong in a trace: NaN, Inf and zeros, hooks that did not fire, parameters without a gradient, "
        "and faults of the training"
    )
    status = _(
        "The exit status is 0 if nothing worse than a remark was found, 1 for a warning or an error, 2 if the trace "
        "cannot be read."
    )
    _add_width(_add_command(add_parser, "findings", findings, _write_findings, status))


def _add_width(command: argparse.ArgumentParser) -> None:
    """Add the option that a command with a table has."""
    text = _("the longest line, in characters, at least {least} (default: the width of the terminal)")
    command.add_argument("--width", type=parse_width, help=text.format(least=MIN_WIDTH))


def _add_command(
    add_parser: AddParser, name: str, about: str, run: Command, more: str | None = None
) -> argparse.ArgumentParser:
    """Add a command that reads a saved trace; ``more`` stands at the end of its help."""
    command = add_parser(name, help=about, description=about, epilog=more)
    command.add_argument("trace", type=Path, help=_("a file that trace.save(...) wrote"))
    command.set_defaults(run=run)
    return command


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
    command.add_argument(
        "--width", type=int, help=_("the longest line, in characters (default: the width of the terminal)")
    )


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


def _write_animation(options: argparse.Namespace) -> int:
    """Write a saved trace as an animation."""
    trace = load(options.trace)
    _require_steps(trace, options.steps)
    path = options.output or options.trace.with_suffix(".gif")
    trace.animate(path, steps=options.steps, width=options.width, seconds=options.seconds, dark=options.dark)
    count = len(trace.steps) if options.steps is None else len(options.steps)
    print(_("{path} is written: {steps} steps.").format(path=path, steps=count))
    return ExitStatus.GOOD


def _write_page(options: argparse.Namespace) -> int:
    """Write a saved trace as an HTML page to a file, or to standard output if the output is ``-``."""
    trace = load(options.trace)
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
    trace = load(options.trace)
    _require_steps(trace, options.steps)
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
    """Write the findings of a saved trace to standard output."""
    return report_findings(_load_with_notes(options), width=options.width)


def _load_with_notes(options: argparse.Namespace) -> Trace:
    """Load a saved trace, and write its notes, on what could not be observed, to standard output."""
    trace = load(options.trace)
    for note in trace.notes:
        for line in wrap(note, options.width or find_terminal_width()):
            write_line(line)
    return trace
