"""The command line: ``python -m hookviz page trace.json -o page.html``, and ``python -m hookviz check``."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from hookviz.api.loading import load
from hookviz.player.html_page import page
from hookviz.support.messages import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what went wrong is said in one line, without a traceback.

    >>> main(["page", "nowhere.json"])
    1
    """
    given = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = given.run
    try:
        return run(given)
    except (OSError, ValueError) as error:
        print(f"hookviz: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hookviz", description=say("cli.about"))
    commands = parser.add_subparsers(required=True, metavar="command")
    command = commands.add_parser("page", help=say("cli.page"), description=say("cli.page"))
    command.add_argument("trace", type=Path, help=say("cli.page.trace"))
    command.add_argument("-o", "--output", help=say("cli.page.output"))
    command.add_argument("--title", help=say("cli.page.title"))
    command.add_argument("--no-source", action="store_false", dest="source", help=say("cli.page.no_source"))
    command.add_argument("--no-values", action="store_false", dest="values", help=say("cli.page.no_values"))
    command.set_defaults(run=_page)
    command = commands.add_parser("check", help=say("cli.check"), description=say("cli.check"))
    command.set_defaults(run=_check)
    return parser


def _page(given: argparse.Namespace) -> int:
    trace = load(given.trace)
    kept = {"source": given.source, "values": given.values}
    if given.output == "-":
        sys.stdout.buffer.write(page(trace, given.title, **kept).encode())
        return 0
    path = given.trace.with_suffix(".html") if given.output is None else Path(given.output)
    trace.to_html(path, given.title, **kept)
    print(say("cli.page.written", path=path))
    return 0


def _check(_: argparse.Namespace) -> int:
    """Print how the installed PyTorch compares with what hookviz relies on."""
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
