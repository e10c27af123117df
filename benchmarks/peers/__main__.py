"""Measure hookviz beside its peers: ``make peers``, or ``python -m benchmarks.peers mlp torchviz``."""

import argparse
import json
import sys
from pathlib import Path

from benchmarks.peers.runs import ROOT, rounds
from benchmarks.peers.table import Results, brief, full
from benchmarks.peers.tools import PEERS
from benchmarks.peers.works import WORKS
from benchmarks.tables import replace_section

RESULTS = Path(__file__).with_name("results.json")
START = "<!-- peers -->\n"
"""Stands before the tables, in both pages."""


def load() -> Results:
    """What was measured before."""
    found: Results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def save(results: Results) -> None:
    """Keep what was measured, each tool and work on a line."""
    works = []
    for work, cells in sorted(results.items()):
        lines = [f" {json.dumps(peer)}: {json.dumps(cell, sort_keys=True)}" for peer, cell in sorted(cells.items())]
        works.append(f"{json.dumps(work)}: {{\n" + ",\n".join(lines) + "\n}")
    RESULTS.write_text("{\n" + ",\n".join(works) + "\n}\n", encoding="utf-8")


def write(results: Results) -> None:
    """Write the tables into both pages."""
    replace_section(ROOT / "benchmarks" / "README.md", START, full(results))
    replace_section(ROOT / "README.md", START, brief(results))


def known(name: str) -> str:
    """``name``, if there is such a work or tool; argparse's own choices would refuse that none is named."""
    names = [*WORKS, "hooks", *PEERS]
    if name not in names:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(names)}")
    return name


def arguments(words: list[str]) -> argparse.Namespace:
    """What is to be measured, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("names", nargs="*", type=known, help="some works and tools only; then nothing is kept")
    parser.add_argument("--keep", action="store_true", help="keep what is measured of some works and tools, too")
    parser.add_argument("--write", action="store_true", help="write the tables from what is kept, and measure nothing")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    """Measure and print; of everything, or if told to, keep the results and write them into the pages."""
    wanted = arguments(words)
    if wanted.write:
        write(load())
        return
    works = [name for name in (*WORKS, "hooks") if name in wanted.names] or [*WORKS, "hooks"]
    peers = [name for name in PEERS if name in wanted.names] or list(PEERS)
    keep = wanted.keep or not wanted.names
    results, fresh = load(), Results()
    for work, cells in rounds(works, peers):
        fresh[work] = cells
        if keep:
            results.setdefault(work, {}).update(cells)
            save(results)
    print(full(fresh))
    if keep:
        write(results)


if __name__ == "__main__":
    main(sys.argv[1:])
