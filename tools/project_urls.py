"""Read the addresses of the project from ``[project.urls]`` in pyproject.toml. None is known unless it stands there."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
FIRST_LESSON = "notebooks/01_the_graph.ipynb"
LAUNCH = """\
Nothing to install: open lesson 01 [on Binder](https://mybinder.org/v2/gh/{name}/HEAD?labpath={lesson}) or
[in Colab](https://colab.research.google.com/github/{name}/blob/HEAD/{lesson}).
"""


def read_url(label: str, file: Path = PYPROJECT) -> str:
    """Read the address with this label, such as ``Repository``; empty if there is none."""
    urls = tomllib.loads(file.read_text(encoding="utf-8"))["project"].get("urls", {})
    return str(urls.get(label, ""))


def write_launch_links(repository: str) -> str:
    """Write the links that open lesson 01 on Binder and in Colab; empty if the repository is not on GitHub.

    >>> write_launch_links("")
    ''
    """
    on_github = re.fullmatch(r"https://github\.com/([^/]+/[^/]+?)(?:\.git)?/?", repository)
    return LAUNCH.format(name=on_github[1], lesson=FIRST_LESSON) if on_github else ""
