"""Make site/atlas.json: ``python -m tools.atlas``, with ``--python PATH`` for each further environment."""

import argparse
import sys
from pathlib import Path
from typing import Any

from tools.atlas.atlas_file import FILE, ROOT, find_gaps
from tools.atlas.differences import find_changes, read_explanations
from tools.atlas.environments import observe, update_file


def main(arguments: list[str]) -> int:
    """Run the programs, write the file, and return 1 if something is missing in it."""
    parser = argparse.ArgumentParser(prog="python -m tools.atlas", description="Make site/atlas.json.")
    parser.add_argument(
        "--python",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="the Python of an environment with another torch; may be given several times",
    )
    pythons = [Path(sys.executable), *parser.parse_args(arguments).python]
    runs = []
    for python in pythons:
        runs.append(observe(python))
        print(f"torch {runs[-1]['torch']}: {len(runs[-1]['programs'])} programs", flush=True)
    atlas = update_file(runs)
    print(f"{FILE.relative_to(ROOT)} has {len(atlas['entries'])} entries, {len(atlas['versions'])} versions of torch.")
    return report_gaps(atlas)


def report_gaps(atlas: dict[str, Any]) -> int:
    """Print what the atlas lacks, and return 1 if it lacks anything."""
    gaps = find_gaps(atlas)
    for torch, situations in gaps.items():
        print(f"torch {torch} has not run {len(situations)} situations as they are now, such as {situations[0]}.")
    explained = {place for difference in read_explanations() for place in difference.places}
    changes = find_changes(atlas)
    for place in sorted(changes.keys() - explained):
        print(f"Not explained in differences.toml: {place} {changes[place]}")
    for place in sorted(explained - changes.keys()):
        print(f"Explained in differences.toml, but all versions agree: {place}")
    return int(bool(gaps or changes.keys() ^ explained))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
