"""Make atlas.json of runs: ``python -m atlas build/atlas/*.json``; without a run, of what it holds already."""

import json
import sys
from pathlib import Path

from atlas.observer import read_programs
from atlas.results import FILE, find_faults, make_atlas, read_atlas, runs_of, write_atlas


def main(paths: list[str]) -> int:
    """Write the file, which keeps its other versions, and return 1 if something is missing in it."""
    runs = [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]
    programs = read_programs()
    atlas = make_atlas(programs, [*runs_of(read_atlas(), programs), *runs])
    FILE.write_text(write_atlas(atlas), encoding="utf-8", newline="\n")
    faults = find_faults(atlas)
    print("\n".join(faults))
    print(f"{FILE.name} has {len(atlas['entries'])} entries and {len(atlas['versions'])} versions of torch.")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
