"""Measure hookviz and its peers: ``make peers``, or ``python -m benchmarks.peers mlp torchviz``."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.peers.runs import ROOT, run_rounds
from benchmarks.peers.table import Results, make_full_tables, make_summary
from benchmarks.peers.tools import PEERS
from benchmarks.peers.workloads import WORKS
from benchmarks.tables import replace_section

RESULTS = Path(__file__).with_name("results.json")
START = "<!-- peers -->\n"
"""The mark before the tables, in both pages."""


def load() -> Results:
    """Load the saved results."""
    results: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return results


def save(results: Results) -> None:
    """Save the results, one line for each tool and work."""
    works = []
    for work, cells in sorted(results.items()):
        lines = [f" {json.dumps(peer)}: {json.dumps(cell, sort_keys=True)}" for peer, cell in sorted(cells.items())]
        works.append(f"{json.dumps(work)}: {{\n" + ",\n".join(lines) + "\n}")
    RESULTS.write_text("{\n" + ",\n".join(works) + "\n}\n", encoding="utf-8")


def write_tables(results: Results) -> None:
    """Write the tables into both pages."""
    replace_section(ROOT / "benchmarks" / "README.md", START, make_full_tables(results))
    replace_section(ROOT / "site" / "promises.md", START, make_summary(results))


def check_name(name: str) -> str:
    """Return ``name`` if it is a work or tool. The ``choices`` of argparse do not allow an empty list of names.

    Raises:
        argparse.ArgumentTypeError: there is no such work or tool.
    """
    names = [*WORKS, "hooks", *PEERS]
    if name not in names:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
    return name


def parse_arguments(words: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("names", nargs="*", type=check_name, help="some works and tools only; then nothing is kept")
    parser.add_argument("--keep", action="store_true", help="keep what is measured of some works and tools, too")
    parser.add_argument("--write", action="store_true", help="write the tables from what is kept, and measure nothing")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    """Measure and print; without names, or with ``--keep``, save the results and write them into the pages."""
    options = parse_arguments(words)
    if options.write:
        write_tables(load())
        return
    works = [name for name in (*WORKS, "hooks") if name in options.names] or [*WORKS, "hooks"]
    peers = [name for name in PEERS if name in options.names] or list(PEERS)
    keep = options.keep or not options.names
    results, new_results = load(), Results()
    for work, cells in run_rounds(works, peers):
        new_results[work] = cells
        if keep:
            results.setdefault(work, {}).update(cells)
            save(results)
    print(make_full_tables(new_results))
    if keep:
        write_tables(results)


if __name__ == "__main__":
    main(sys.argv[1:])
