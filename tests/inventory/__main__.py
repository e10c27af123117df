"""Print how many rows there are of each kind and fate; with ``--programs``, the node ids for pytest."""

import sys
from collections import Counter

from tests.inventory.table import FATES, read_promises


def print_counts() -> None:
    """Print a table: one line for each kind."""
    promises = read_promises()
    counts = Counter((promise.kind, promise.fate) for promise in promises)
    kinds = dict.fromkeys(promise.kind for promise in promises)
    print("|", " | ".join(["kind", *FATES]), "|")
    print("|---" * (len(FATES) + 1) + "|")
    for kind in kinds:
        print("|", " | ".join([kind, *(str(counts[kind, fate]) for fate in FATES)]), "|")
    totals = Counter(promise.fate for promise in promises)
    print("|", " | ".join(["all", *(str(totals[fate]) for fate in FATES)]), "|")


def print_programs() -> None:
    """Print each test that some row names, one in a line."""
    programs = {promise.program for promise in read_promises()}
    print("\n".join(sorted(program for program in programs if ".py::" in program)))


if __name__ == "__main__":
    (print_programs if "--programs" in sys.argv[1:] else print_counts)()
