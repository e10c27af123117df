"""The start of a lesson: badges that open it elsewhere, and a cell that installs hookviz where it is missing."""

import copy
import tomllib
from typing import Any
from urllib.parse import quote

import nbformat

from tools.translation.message_sources import BADGES_ID, INSTALL_ID, ROOT
from tools.translation.translated import translated

BADGE = "[![{title}]({picture})]({address})"
PICTURES = {
    "Colab": "https://colab.research.google.com/assets/colab-badge.svg",
    "Binder": "https://mybinder.org/badge_logo.svg",
}
INSTALL_SOURCE = """\
# @title {title}
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
{imports}
if find_spec("hookviz") is None:
{find}
    for source in sources:
        print("{begins}")
        here = [name for name in ("torch", "ipywidgets") if find_spec(name)]
        kept = [f"{{name}}=={{version(name)}}" for name in here]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--upgrade-strategy", "only-if-needed"]
        done = subprocess.run([*pip, *kept, source], capture_output=True, text=True)
        print(done.stderr or "{ends}")"""
"""pip refuses to replace a package whose installed version is among its requirements.

Not %pip: marimo does not run a cell with a magic command in a block.
"""
FIND_REPOSITORY = """\
    sources = ["hookviz[lessons] @ git+{repository}"]"""
FIND_CHECKOUT = """\
    marks = [folder / "hookviz" / "py.typed" for folder in Path.cwd().parents]
    checkouts = [mark.parents[1] for mark in marks if mark.exists()]
    sources = [f"{{folder}}[lessons]" for folder in checkouts[:1]]
    if not sources:
        print("{nowhere}")
        print('{advice}')"""
"""hookviz is on no package index yet, and somebody else may take its name there: it is never installed by its name."""
CHOOSE_LANGUAGE = """

import hookviz

hookviz.language("{language}");"""
"""In an edition in another language than English: the code of its lessons is that of the English ones."""
COLLAPSED = {"cellView": "form", "jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
"""The marks of a collapsed cell for Colab, JupyterLab and Jupyter Book."""


def add_start(notebook: Any, path: str, repository: str, language: str = "en") -> Any:
    """Copy a notebook with its start right below its title; a start that it has is replaced.

    Args:
        notebook: a lesson, whose first cell is its title.
        path: the path of the lesson in the repository.
        repository: the address of the repository; empty if it has none.
        language: the language of the lesson.
    """
    started = remove_start(notebook)
    badges = make_badges(repository, path, language)
    install = nbformat.v4.new_code_cell(make_install_source(repository, language), id=INSTALL_ID, metadata=COLLAPSED)  # type: ignore[no-untyped-call]
    start = [nbformat.v4.new_markdown_cell(badges, id=BADGES_ID)] if badges else []  # type: ignore[no-untyped-call]
    started.cells[1:1] = [*start, install]
    return started


def remove_start(notebook: Any) -> Any:
    """Copy a notebook without its start."""
    rest = copy.deepcopy(notebook)
    rest.cells = [cell for cell in rest.cells if cell.get("id") not in (BADGES_ID, INSTALL_ID)]
    return rest


def read_repository() -> str:
    """Read the address of the project's repository in pyproject.toml; empty if it has none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"].get("Repository", ""))


def launch_addresses(repository: str, path: str) -> dict[str, str]:
    """Make the addresses that open a notebook of a repository on GitHub on Colab and on Binder; else none."""
    name = repository.removesuffix("/").removesuffix(".git").removeprefix("https://github.com/")
    if not name or name.startswith("https:"):
        return {}
    return {
        "Colab": f"https://colab.research.google.com/github/{name}/blob/main/{quote(path)}",
        "Binder": f"https://mybinder.org/v2/gh/{name}/main?labpath={quote(path, safe='')}",
    }


def make_badges(repository: str, path: str, language: str = "en") -> str:
    """Make the badges that open a notebook on Colab and on Binder; empty without a repository."""
    addresses = launch_addresses(repository, path)
    return " ".join(
        BADGE.format(
            title=translated("Open on {place}", language).format(place=place), picture=PICTURES[place], address=address
        )
        for place, address in addresses.items()
    )


def make_install_source(repository: str, language: str = "en") -> str:
    """Make the code that installs hookviz from its repository, or from the checkout around the notebook."""
    find = FIND_REPOSITORY if repository else FIND_CHECKOUT
    source = INSTALL_SOURCE.format(
        imports="" if repository else "from pathlib import Path\n",
        find=find.format(
            repository=repository,
            nowhere=translated("hookviz is missing, and it is on no package index yet.", language),
            advice=translated('Run this in its folder, then restart the kernel: pip install ".[lessons]"', language),
        ),
        title=translated("Installs hookviz where it is missing", language),
        begins=translated("pip installs hookviz, and keeps the torch and ipywidgets that are here.", language),
        ends=translated("hookviz is installed.", language),
    )
    return source if language == "en" else source + CHOOSE_LANGUAGE.format(language=language)
