"""The addresses of the project: they stand in `[project.urls]` in pyproject.toml, or are not known."""

import tomllib
from pathlib import Path
from urllib.parse import quote, urlsplit

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
FIRST_LESSON = "notebooks/01_the_graph.ipynb"
BRANCH = "main"


def read_url(label: str, file: Path = PYPROJECT) -> str:
    """Read the address with this label, such as ``Repository``; empty if there is none."""
    urls = tomllib.loads(file.read_text(encoding="utf-8"))["project"].get("urls", {})
    return str(urls.get(label, ""))


def launch_addresses(repository: str, path: str) -> dict[str, str]:
    """Make the addresses that open a notebook of the repository on Colab and on Binder; none without a repository.

    Colab opens notebooks of GitHub only, Binder those of any repository.
    """
    if not repository:
        return {}
    repository = repository.removesuffix("/").removesuffix(".git")
    host, name = urlsplit(repository).hostname, urlsplit(repository).path.strip("/")
    is_github = host == "github.com"
    source = f"gh/{name}" if is_github else f"git/{quote(repository, safe='')}"
    binder = f"https://mybinder.org/v2/{source}/{BRANCH}?labpath={quote(path, safe='')}"
    colab = f"https://colab.research.google.com/github/{name}/blob/{BRANCH}/{quote(path)}"
    return {"Colab": colab, "Binder": binder} if is_github else {"Binder": binder}


def write_launch_links(repository: str) -> str:
    """Write the links that open lesson 01 elsewhere; empty without a repository."""
    links = [f"[{place}]({address})" for place, address in launch_addresses(repository, FIRST_LESSON).items()]
    return f"Nothing to install: open lesson 01 on {' or on '.join(links)}.\n" if links else ""
