"""What tests need besides Python packages that every set-up has, and what happens where it is missing."""

import os
from importlib.util import find_spec

import pytest


def leave_out(part: str, reason: str) -> None:
    """Skip the test with this reason, or fail it where ``HOOKVIZ_REQUIRE`` names the part, as ``.ci/run`` does."""
    if part in os.environ.get("HOOKVIZ_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)


def need_site() -> None:
    """Leave the test out where the packages are missing that make the site and the slides."""
    missing = [name for name in ("sphinx", "furo", "myst_nb", "sphinx_revealjs") if find_spec(name) is None]
    if missing:
        leave_out("site", f"{', '.join(missing)} not installed: make test installs what makes the site and the slides")
