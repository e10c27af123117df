"""Environments with torch in which the programs run, and the file that is made from what they showed."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tools.atlas import observer
from tools.atlas.atlas_file import FILE, merge, read_atlas, write_atlas
from tools.atlas.differences import read_explanations, read_surprises
from tools.torch_versions import clean_environ

PROGRAMS = Path(__file__).parent / "programs"


def observe(python: Path) -> dict[str, Any]:
    """Run all programs with the torch of another Python, and return what they showed; RuntimeError if that fails."""
    command = [str(python), observer.__file__, str(PROGRAMS)]
    # The environment needs torch alone, so nothing of this checkout may reach it.
    surroundings = clean_environ() | {"OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", env=surroundings)
    if ended.returncode:
        raise RuntimeError(f"{python} ended with {ended.returncode}:\n{ended.stderr.strip()}")
    observations: dict[str, Any] = json.loads(ended.stdout)
    return observations


def update_file(runs: Iterable[Mapping[str, Any]], path: Path = FILE) -> dict[str, Any]:
    """Write what ``observe`` returned into the file, which keeps its other versions, and return the atlas."""
    atlas = merge(observer.read_programs(PROGRAMS), runs, read_atlas(path) if path.exists() else {})
    # The explanations are part of the file, so that it can be read without this checkout.
    atlas["differences"] = [difference._asdict() for difference in [*read_explanations(), *read_surprises()]]
    write_atlas(atlas, path)
    return atlas
