"""Run the programs for other frameworks, and keep what they print: ``python -m tools.other_frameworks``.

Only the programs whose packages are installed for this Python run; what the others printed stays as it is.
"""

import json
import re
from pathlib import Path

from hookviz.course.other_frameworks import installed_version, print_of, read_printed, source_of

FOLDER = Path(__file__).resolve().parent.parent / "hookviz" / "course" / "programs"
IMPORT = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)
PACKAGES = ("flax", "jax", "optax", "tensorflow", "torchvision")
"""The packages whose versions are kept."""


def main() -> None:
    """Run what can run, and say what was left out."""
    kept = read_printed()
    names = sorted(path.stem for path in FOLDER.glob("*.txt"))
    for name in names:
        imported = set(IMPORT.findall(source_of(name)))
        versions = {package: installed_version(package) for package in PACKAGES if package in imported}
        missing = [package for package, number in versions.items() if number is None]
        if missing:
            print(f"{name}: left out, {', '.join(missing)} not installed")
            continue
        kept[name] = {"versions": versions, "printed": print_of(name)}
        print(f"{name}: ran")
    rows = {name: kept[name] for name in names if name in kept}
    (FOLDER / "printed.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
