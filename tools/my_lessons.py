"""Give the student copies of the lessons to work in: ``make lab`` runs this before it opens them.

A copy is made where none is, and never overwritten. The file ``.origins.json`` beside the copies remembers from which
edition of a lesson each one was made, so that a lesson that has changed since then can be named.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

ORIGINS = ".origins.json"
SUFFIXES = (".ipynb", ".md")
"""What is copied: the lessons, and the pages that they link to."""
LINK = "](solutions)"
"""A link to the solutions, which stay where they are."""


def main(arguments: list[str]) -> None:
    """Copy the lessons of the folder that is named first into the one that is named second, and say what is newer."""
    source, target = map(Path, arguments)
    newer = provide(source, target)
    if newer:
        print("\n".join(explain(newer, source, target)))


def provide(source: Path, target: Path) -> list[str]:
    """Copy what ``target`` lacks, and return the names of the copies whose lesson has changed since."""
    target.mkdir(parents=True, exist_ok=True)
    origins = read_origins(target)
    newer = []
    for page in sorted(page for page in source.iterdir() if page.suffix in SUFFIXES):
        copy, edition = target / page.name, digest(page)
        if not copy.exists():
            solutions = Path(os.path.relpath(source / "solutions", target)).as_posix()
            text = page.read_text(encoding="utf-8").replace(LINK, f"]({solutions})")
            copy.write_text(text, encoding="utf-8", newline="\n")
            origins[page.name] = edition
        elif edition not in (origins.get(page.name), digest(copy), digest_of(beside(copy))):
            newer.append(page.name)
    (target / ORIGINS).write_text(json.dumps(origins, indent=1), encoding="utf-8")
    return newer


def read_origins(target: Path) -> dict[str, str]:
    """Which edition of its lesson each copy was made from."""
    file = target / ORIGINS
    origins: dict[str, str] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return origins


def digest(page: Path) -> str:
    """What identifies an edition of a page."""
    return hashlib.sha256(page.read_bytes()).hexdigest()


def digest_of(page: Path) -> str | None:
    """The same, or None for a page that is not there."""
    return digest(page) if page.exists() else None


def beside(copy: Path) -> Path:
    """Where the new edition of a lesson may stand beside the student's copy."""
    return copy.with_name(f"new_{copy.name}")


def explain(newer: list[str], source: Path, target: Path) -> list[str]:
    """Say which lessons have changed since they were copied, and how to take them beside one's own."""
    lines = [f"{len(newer)} of your copies in {target} were made from an earlier edition. Yours stay as they are;"]
    lines += ["to take a new edition beside your own:"]
    return lines + [f"    cp {source / name} {beside(target / name)}" for name in newer]


if __name__ == "__main__":
    main(sys.argv[1:])
