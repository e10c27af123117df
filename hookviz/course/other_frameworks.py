"""Programs for other frameworks: they run where it is installed; else one sees what they printed elsewhere."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from html import escape
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from hookviz.support.messages import _, join_list

PROGRAMS = files(__package__) / "programs"
"""The folder of the programs, and of ``printed.json``: what each of them printed, and by which versions."""
DISTRIBUTIONS = {"tensorflow": ("tensorflow", "tensorflow-cpu")}
"""The distributions that bring a module, if it is not the one of its name."""
QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "-1",
    "JAX_PLATFORMS": "cpu",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}


@dataclass(frozen=True)
class ProgramRun:
    """What a program printed."""

    name: str
    printed: str
    versions: dict[str, str]
    """Package → version."""
    here: bool
    """Whether it ran just now, on this machine."""

    def __repr__(self) -> str:
        return f"{self._origin}:\n{self.printed}"

    def _repr_html_(self) -> str:
        return f"<p><em>{escape(self._origin)}:</em></p><pre>{escape(self.printed)}</pre>"

    @property
    def _origin(self) -> str:
        packages = join_list([f"{package} {number}" for package, number in self.versions.items()])
        return (
            _("Printed just now by {packages}")
            if self.here
            else _("Printed elsewhere by {packages}, not installed here")
        ).format(packages=packages)


def run_program(name: str) -> ProgramRun:
    """Run a program if all that it imports is installed, and else return what it printed elsewhere.

    Raises:
        ValueError: there is no such program.
        RuntimeError: the program failed.

    >>> run_program("jax_grad").printed
    '[12.0, 8.0, 6.0]'
    """
    recorded = read_printed().get(name)
    if recorded is None:
        raise ValueError(f"there is no program {name!r}, only {', '.join(sorted(read_printed()))}")
    installed = {package: installed_version(package) for package in recorded["versions"]}
    versions = {package: number for package, number in installed.items() if number}
    if len(versions) < len(installed):
        return ProgramRun(name, recorded["printed"], recorded["versions"], here=False)
    return ProgramRun(name, print_of(name), versions, here=True)


def read_printed() -> dict[str, Any]:
    """What each program printed: name → ``printed`` and ``versions``."""
    printed: dict[str, Any] = json.loads((PROGRAMS / "printed.json").read_text(encoding="utf-8"))
    return printed


def source_of(name: str) -> str:
    """The source of a program."""
    return (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")


def print_of(name: str) -> str:
    """Run a program in a process of its own, and return what it prints.

    Raises:
        RuntimeError: the program failed.
    """
    done = subprocess.run(
        [sys.executable, "-c", source_of(name)], capture_output=True, text=True, env={**os.environ, **QUIET}
    )
    if done.returncode:
        raise RuntimeError(f"the program {name!r} failed:\n{done.stderr}")
    return done.stdout.rstrip("\n")


def installed_version(package: str) -> str | None:
    """The version of an installed package, None if it is not installed."""
    for distribution in DISTRIBUTIONS.get(package, (package,)):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None
