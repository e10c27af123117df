"""The start of a lesson: badges that open it elsewhere, and a cell that installs hookviz where it is missing."""

import copy
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import nbformat

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
BADGES_ID, INSTALL_ID = "badges", "install"
BRANCH = "main"
BADGE = "[![{title}]({picture})]({address})"
COLAB_PICTURE = "https://colab.research.google.com/assets/colab-badge.svg"
BINDER_PICTURE = "https://mybinder.org/badge_logo.svg"
INSTALL_SOURCE = """\
# @title Installs hookviz where it is missing
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec

if find_spec("hookviz") is None:
    print("pip installs hookviz, and keeps the torch and ipywidgets that are here.")
    kept = [f"{{name}}=={{version(name)}}" for name in ("torch", "ipywidgets") if find_spec(name)]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--upgrade-strategy", "only-if-needed"]
    done = subprocess.run([*pip, *kept, "{requirement}"], capture_output=True, text=True)
    print(done.stderr or "hookviz is installed.")"""
"""pip refuses to replace a package whose installed version is among its requirements.

Not %pip: marimo does not run a cell with a magic command in a block.
"""
COLLAPSED = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
"""The marks of a collapsed cell for Colab, JupyterLab and Jupyter Book."""


def read_repository(pyproject: Path = PYPROJECT) -> str:
    """Read the address of the public repository; empty if none is set."""
    urls = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"].get("urls", {})
    return str(urls.get("Repository", "")).removesuffix("/").removesuffix(".git")


def add_start(notebook: Any, path: str, repository: str) -> Any:
    """Copy a notebook with its start right below its title; a start that it has is replaced.

    Args:
        notebook: a lesson, whose first cell is its title.
        path: the path of the lesson in the repository.
        repository: the address of the repository; empty if it has none.
    """
    started = remove_start(notebook)
    badges = make_badges(repository, path)
    install = nbformat.v4.new_code_cell(make_install_source(repository), id=INSTALL_ID, metadata=COLLAPSED)  # type: ignore[no-untyped-call]
    start = [nbformat.v4.new_markdown_cell(badges, id=BADGES_ID)] if badges else []  # type: ignore[no-untyped-call]
    started.cells[1:1] = [*start, install]
    return started


def remove_start(notebook: Any) -> Any:
    """Copy a notebook without its start."""
    rest = copy.deepcopy(notebook)
    rest.cells = [cell for cell in rest.cells if cell.get("id") not in (BADGES_ID, INSTALL_ID)]
    return rest


def make_badges(repository: str, path: str) -> str:
    """Make the badges that open a notebook on Colab and on Binder; empty without a repository.

    Colab opens notebooks of GitHub only, Binder those of any repository.
    """
    if not repository:
        return ""
    host, name = urlsplit(repository).hostname, urlsplit(repository).path.strip("/")
    is_github = host == "github.com"
    source = f"gh/{name}" if is_github else f"git/{quote(repository, safe='')}"
    binder = f"https://mybinder.org/v2/{source}/{BRANCH}?labpath={quote(path, safe='')}"
    badges = [BADGE.format(title="Open on Binder", picture=BINDER_PICTURE, address=binder)]
    if is_github:
        colab = f"https://colab.research.google.com/github/{name}/blob/{BRANCH}/{quote(path)}"
        badges.insert(0, BADGE.format(title="Open in Colab", picture=COLAB_PICTURE, address=colab))
    return " ".join(badges)


def make_install_source(repository: str) -> str:
    """Make the code that installs hookviz from its repository, or from pip's index if it has none."""
    return INSTALL_SOURCE.format(requirement=f"hookviz[lessons]{f' @ git+{repository}' if repository else ''}")
