"""The command line: ``python -m hookviz page trace.json -o page.html``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hookviz.api.loading import load
from hookviz.page import page
from hookviz.support.messages import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what went wrong is said in one line, without a traceback.

    >>> main(["page", "nowhere.json"])
    1
    """
    given = _parser().parse_args(arguments)
    try:
        _page(given)
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
    command.add_argument("--no-source", action="store_false", dest="source", help=say("cli.page.no_source"))
    command.add_argument("--no-values", action="store_false", dest="values", help=say("cli.page.no_values"))
    return parser


def _page(given: argparse.Namespace) -> None:
    trace = load(given.trace)
    kept = {"source": given.source, "values": given.values}
    if given.output == "-":
        sys.stdout.buffer.write(page(trace, given.title, **kept).encode())
        return
    path = given.trace.with_suffix(".html") if given.output is None else Path(given.output)
    trace.to_html(path, given.title, **kept)
    print(say("cli.page.written", path=path))


if __name__ == "__main__":
    sys.exit(main())
