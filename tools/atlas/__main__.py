"""Make site/atlas.json: ``python -m tools.atlas``, with ``--python PATH`` for each further environment."""

import argparse
import sys
from pathlib import Path

from tools.atlas.atlas_file import FILE, ROOT, find_gaps, merge, read_atlas, write_atlas
from tools.atlas.differences import find_changes, read_explanations, read_surprises
from tools.atlas.environments import PROGRAMS, observe
from tools.atlas.observer import read_programs


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
    atlas = merge(read_programs(PROGRAMS), runs, read_atlas() if FILE.exists() else {})
    # The explanations are part of the file, so that it can be read without this checkout.
    atlas["differences"] = [difference._asdict() for difference in [*read_explanations(), *read_surprises()]]
    write_atlas(atlas)
    print(f"{FILE.relative_to(ROOT)} has {len(atlas['entries'])} entries, {len(atlas['versions'])} versions of torch.")
    return report_gaps(atlas)


def report_gaps(atlas: dict[str, object]) -> int:
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
