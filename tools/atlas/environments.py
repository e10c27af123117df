"""Environments with torch in which the programs run."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tools.atlas import observer

PROGRAMS = Path(__file__).parent / "programs"


def observe(python: Path) -> dict[str, Any]:
    """Run all programs with the torch of another Python, and return what they showed; RuntimeError if that fails."""
    command = [str(python), observer.__file__, str(PROGRAMS)]
    # The environment needs torch alone, so nothing of this checkout may reach it.
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(command, capture_output=True, encoding="utf-8", env={**surroundings, "OMP_NUM_THREADS": "1"})
    if ended.returncode:
        raise RuntimeError(f"{python} ended with {ended.returncode}:\n{ended.stderr.strip()}")
    observations: dict[str, Any] = json.loads(ended.stdout)
    return observations
