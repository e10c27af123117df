"""Optional requirements of tests: a test without them is skipped, or fails where they are mandatory."""

import os
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec

import pytest
import torch

from hookviz.autograd.torch_internals import SAVED_TENSORS_SHOW_THEIR_HOOKS

needs_saved_tensors = pytest.mark.skipif(
    not SAVED_TENSORS_SHOW_THEIR_HOOKS, reason="what nodes saved, and so values of formulas, need PyTorch 2.10"
)
"""Marks a test of a feature that an older PyTorch does not have; a screen says so in its place."""


def warns_of_early_hook() -> AbstractContextManager[object]:
    """Expect torch's warning that a full backward hook runs early since no input requires a gradient; 2.6 has none."""
    if torch.__version__ < "2.8":
        return nullcontext()
    return pytest.warns(UserWarning, match="Full backward hook is firing .* no inputs require gradients")


def skip_or_fail(part: str, reason: str) -> None:
    """Skip the test with this reason, or fail it where ``HOOKVIZ_REQUIRE`` names the part, as ``.ci/run`` does."""
    if part in os.environ.get("HOOKVIZ_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)


def require_site() -> None:
    """Skip or fail the test if the packages that build the site and the slides are missing."""
    missing = [name for name in ("sphinx", "furo", "myst_nb", "sphinx_revealjs") if find_spec(name) is None]
    if missing:
        skip_or_fail(
            "site", f"{', '.join(missing)} not installed: make test installs what makes the site and the slides"
        )
