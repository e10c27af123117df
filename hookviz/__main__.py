"""The command line: ``python -m hookviz page trace.json -o page.html``, and ``python -m hookviz check``."""

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
    except (OSError, ValueError) as error:
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
    command = commands.add_parser("check", help=say("cli.check"), description=say("cli.check"))
    command.set_defaults(run=_check_torch)
    return parser


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
