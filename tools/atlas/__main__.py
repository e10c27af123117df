"""Make site/atlas.json: ``make atlas``, which makes an environment with each release of torch and then removes it.

``python -m tools.atlas`` runs the programs with the torch of this Python alone; ``--python PATH`` names an environment
that is there, and ``--releases 2.6 newest`` makes one for each release.
"""

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tools.atlas.atlas_file import FILE, ROOT, find_gaps
from tools.atlas.differences import find_changes, read_explanations
from tools.atlas.environments import observe, update_file
from tools.torch_versions import find_release, make_environment


def main(arguments: list[str]) -> int:
    """Run the programs, write the file, and return 1 if something is missing in it."""
    parser = argparse.ArgumentParser(prog="python -m tools.atlas", description="Make site/atlas.json.")
    parser.add_argument("--releases", nargs="+", default=[], help="make an environment with each of these torches")
    parser.add_argument(
        "--python",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="the Python of an environment with another torch; may be given several times",
    )
    options = parser.parse_args(arguments)
    runs = []
    for python in list_pythons(options.python, options.releases):
        runs.append(observe(python))
        print(f"torch {runs[-1]['torch']}: {len(runs[-1]['programs'])} programs", flush=True)
    atlas = update_file(runs)
    print(f"{FILE.relative_to(ROOT)} has {len(atlas['entries'])} entries, {len(atlas['versions'])} versions of torch.")
    return report_gaps(atlas)


def list_pythons(pythons: Iterable[Path], releases: Iterable[str]) -> Iterator[Path]:
    """Yield this Python, those that are there, and one for each release, which is removed before the next is made."""
    yield Path(sys.executable)
    yield from pythons
    for release in map(find_release, releases):
        with make_environment(release) as python:
            yield python


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
