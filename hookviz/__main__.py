"""The command line: ``python -m hookviz page trace.json -o page.html``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hookviz.files import load
from hookviz.page import page
from hookviz.words import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what went wrong is said in one line, without a traceback.

    >>> main(["page", "nowhere.json"])
    1
    """
    given = _parser().parse_args(arguments)
    try:
        _page(given.trace, given.output, given.title)
    except (OSError, ValueError) as error:
        print(f"hookviz: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hookviz", description=say("cli.about"))
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("page", help=say("cli.page"), description=say("cli.page"))
    command.add_argument("trace", type=Path, help=say("cli.page.trace"))
    command.add_argument("-o", "--output", help=say("cli.page.output"))
    command.add_argument("--title", help=say("cli.page.title"))
    return parser


def _page(trace: Path, output: str | None, title: str | None) -> None:
    recorded = load(trace)
    if output == "-":
        sys.stdout.buffer.write(page(recorded, title).encode())
        return
    path = trace.with_suffix(".html") if output is None else Path(output)
    recorded.to_html(path, title)
    print(say("cli.page.written", path=path))


if __name__ == "__main__":
    sys.exit(main())
