"""The names that a user sees: each has a page in the API reference, and each function an example."""

import inspect
import re
from pathlib import Path

import pytest

import hookviz
import hookviz.course
import hookviz.testing
from hookviz.pytest_plugin import NAME, OPTION

API = Path(__file__).parents[2] / "site" / "api"
NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (hookviz, hookviz.course, hookviz.testing)
    for name in module.__all__
}


def test_every_public_name_has_a_page_in_the_reference() -> None:
    """The build of the site fails at a name that does not exist, and at a type in a signature that has no page."""
    _, table = (API / "index.rst").read_text(encoding="utf-8").split("All names\n---------\n")
    listed = {f"hookviz.{name}" for name in re.findall(r"^   ~?([\w.]+)$", table, re.MULTILINE)}
    from hookviz.integrations import lightning, transformers  # with their libraries, for seconds

    callbacks = {f"{module.__name__}.{name}" for module in (lightning, transformers) for name in module.__all__}
    assert NAMES.keys() | callbacks <= listed


@pytest.mark.parametrize("name", [name for name, what in NAMES.items() if inspect.isfunction(what)])
def test_public_function_has_an_example_that_can_be_typed_as_it_stands(name: str) -> None:
    docstring = inspect.getdoc(NAMES[name]) or ""
    assert re.search(r"\n>>> (?:import|from) ", docstring), "an example imports what it uses"


def test_page_of_the_pytest_plugin_names_its_options() -> None:
    page = (API / "pytest_plugin.md").read_text(encoding="utf-8")
    assert f"```{{option}} {OPTION}\n" in page and f"```{{confval}} {NAME}\n" in page
