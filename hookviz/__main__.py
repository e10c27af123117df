"""The command line: ``python -m hookviz page trace.json -o page.html``, ``animate`` and ``check``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hookviz.api.loading import load
from hookviz.player.html_page import page
from hookviz.support.messages import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status; an error is printed in one line, without a traceback.

    >>> main(["page", "nowhere.json"])
    1
    """
    options = _build_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.run
    try:
        return command(options)
    except (ImportError, IndexError, OSError, ValueError) as error:
        print(f"hookviz: {error}", file=sys.stderr)
        return 1


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hookviz", description=say("cli.about"))
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("page", help=say("cli.page"), description=say("cli.page"))
    command.add_argument("trace", type=Path, help=say("cli.page.trace"))
    command.add_argument("-o", "--output", help=say("cli.page.output"))
    command.add_argument("--title", help=say("cli.page.title"))
    command.add_argument("--no-source", action="store_false", dest="source", help=say("cli.page.no_source"))
    command.add_argument("--no-values", action="store_false", dest="values", help=say("cli.page.no_values"))
    command.set_defaults(run=_write_page)
    _add_animate(commands.add_parser("animate", help=say("cli.animate"), description=say("cli.animate")))
    command = commands.add_parser("check", help=say("cli.check"), description=say("cli.check"))
    command.set_defaults(run=_check_torch)
    return parser


def _add_animate(command: argparse.ArgumentParser) -> None:
    """Add the arguments of ``animate``."""
    width, seconds = 800, 1.5
    command.add_argument("trace", type=Path, help=say("cli.page.trace"))
    command.add_argument("-o", "--output", type=Path, help=say("cli.animate.output"))
    command.add_argument("--steps", type=_parse_range, help=say("cli.animate.steps"))
    command.add_argument("--width", type=int, default=width, help=say("cli.animate.width", width=width))
    command.add_argument("--seconds", type=float, default=seconds, help=say("cli.animate.seconds", seconds=seconds))
    command.add_argument("--dark", action="store_true", help=say("cli.animate.dark"))
    command.set_defaults(run=_write_animation)


def _parse_range(text: str) -> range:
    """Parse two step numbers, counted from 1, as the steps between them, counted from 0.

    >>> _parse_range("3-10"), _parse_range("4")
    (range(2, 10), range(3, 4))
    """
    first, _, last = text.partition("-")
    try:
        steps = range(int(first) - 1, int(last or first))
    except ValueError:
        raise argparse.ArgumentTypeError(say("cli.animate.range", text=text)) from None
    if steps.start < 0 or not steps:
        raise argparse.ArgumentTypeError(say("cli.animate.range", text=text))
    return steps


def _write_animation(options: argparse.Namespace) -> int:
    """Write a saved trace as an animation."""
    trace = load(options.trace)
    path = options.output or options.trace.with_suffix(".gif")
    trace.animate(path, steps=options.steps, width=options.width, seconds=options.seconds, dark=options.dark)
    count = len(trace.steps) if options.steps is None else len(options.steps)
    print(say("cli.animate.written", path=path, steps=count))
    return 0


def _write_page(options: argparse.Namespace) -> int:
    """Write a saved trace as an HTML page to a file, or to standard output if the output is ``-``."""
    trace = load(options.trace)
    contents = {"source": options.source, "values": options.values}
    if options.output == "-":
        sys.stdout.buffer.write(page(trace, options.title, **contents).encode())
        return 0
    path = options.trace.with_suffix(".html") if options.output is None else Path(options.output)
    trace.to_html(path, options.title, **contents)
    print(say("cli.page.written", path=path))
    return 0


def _check_torch(_: argparse.Namespace) -> int:
    """Print where the installed PyTorch differs from what hookviz relies on; return 1 if it does."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError:
        print(say("torch.not_installed"))
        return 1
    from hookviz.recorder.compatibility import check_torch

    report = check_torch()
    print("\n".join(report.lines()))
    return 1 if report.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
