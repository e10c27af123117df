"""Environments with different releases of PyTorch, each made from nothing and removed after use."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

NEWEST = "newest"
FOLDER = Path("build") / "matrix"


class Release(NamedTuple):
    """A release of PyTorch, and the ipywidgets beside which hookviz is tried."""

    torch: str
    """``2.6`` for the last of 2.6, or ``newest``."""
    ipywidgets: str
    """A version, or ``newest``."""

    def requirements(self) -> list[str]:
        """What pip is asked for.

        >>> Release("2.11", "7.7.1").requirements(), Release(NEWEST, NEWEST).requirements()
        (['torch==2.11.*', 'ipywidgets==7.7.1'], ['torch', 'ipywidgets'])
        """
        torch = "torch" if self.torch == NEWEST else f"torch=={self.torch}.*"
        return [torch, "ipywidgets" if self.ipywidgets == NEWEST else f"ipywidgets=={self.ipywidgets}"]


# Colab has had ipywidgets 7.7.1 since 2022, and so whoever has an older torch may well have it, too.
RELEASES = (
    Release("2.6", "7.7.1"),
    Release("2.8", "7.7.1"),
    Release("2.11", "7.7.1"),
    Release("2.13", NEWEST),
    Release(NEWEST, NEWEST),
)


def find_release(torch: str) -> Release:
    """Find the release of that name; one that is not in the list is tried with the newest ipywidgets."""
    return next((release for release in RELEASES if release.torch == torch), Release(torch, NEWEST))


@contextmanager
def make_environment(release: Release, keep: bool = False) -> Iterator[Path]:
    """Make an environment with the release, and yield its Python; then remove it, unless ``keep`` says otherwise.

    A CUDA build of torch is some 3 GB, 7 GB unpacked: so there is never more than one, unless they are kept.

    Raises:
        subprocess.CalledProcessError: pip could not install it; its words are on the screen.
    """
    folder = (FOLDER / f"torch-{release.torch}").absolute()
    python = folder / "bin" / "python"
    try:
        if not (keep and python.exists()):
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            install(python, *release.requirements())
        yield python
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def install(python: Path, *requirements: str) -> None:
    """Install packages into the environment of ``python``, in the versions that pip chooses.

    Raises:
        subprocess.CalledProcessError: pip could not install them; its words are on the screen.
    """
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*command, *requirements], check=True, env=clean_environ())


def clean_environ() -> dict[str, str]:
    """The variables for a Python of another environment: nothing leads back to the one that runs this."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: text for name, text in os.environ.items() if name not in ours}
