"""Print the table of all promises as Markdown; with ``--tests``, only the node ids of their tests."""

import sys
from itertools import groupby

from tests.inventory.table import read_promises


def print_table() -> None:
    """Print a table for each kind of promise, with the number of its rows."""
    for kind, rows in groupby(read_promises(), key=lambda promise: promise.kind):
        promises = [*rows]
        print(f"\n## {kind} ({len(promises)})\n\n| promise | its test | note |\n|---|---|---|")
        for promise in promises:
            print(f"| {promise.name} | {promise.test} | {promise.note} |")


def print_tests() -> None:
    """Print each test that some row names, one in a line."""
    print("\n".join(sorted({promise.test for promise in read_promises() if ".py::" in promise.test})))


if __name__ == "__main__":
    (print_tests if "--tests" in sys.argv[1:] else print_table)()
