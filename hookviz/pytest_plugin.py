"""A pytest plugin: a test that leaves hooks behind gets an error. It does nothing until it is asked for.

``--hookviz-leaks``, or ``hookviz_leaks = true`` in the ini file, checks every test. The mark ``hookviz_leaks`` or the
fixture ``hookviz_leaks`` checks one test, and the mark ``hookviz_leaks(False)`` leaves one out.

pytest imports this file at every start, in projects without hooks, too: so it imports only pytest, and its three help
texts are not translated.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hookviz.testing.hook_leaks import LeakWatch

OPTION, NAME = "--hookviz-leaks", "hookviz_leaks"
"""The option of the command line; the name of the ini option, of the mark and of the fixture."""
_MARK_HELP = f"{NAME}(check=True): check that the test leaves no hooks behind; {NAME}(False) leaves the test out"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that ask for the check of every test."""
    help_text = "report an error for each test that leaves PyTorch hooks behind"
    parser.getgroup("hookviz").addoption(OPTION, action="store_true", help=help_text)
    parser.addini(NAME, help_text, type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", _MARK_HELP)


@pytest.hookimpl(trylast=True)  # other plugins may add marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give the fixture to each test that is to be checked, before its other fixtures."""
    is_on = bool(config.getoption(OPTION) or config.getini(NAME))
    for item in items:
        fixtures = getattr(item, "fixturenames", None)
        if fixtures is not None and _is_checked(item, is_on):
            # A list of its own: the tests of one parametrized function share theirs.
            item.fixturenames = [NAME, *(name for name in fixtures if name != NAME)]  # type: ignore[attr-defined]


def _is_checked(item: pytest.Item, by_default: bool) -> bool:
    """Whether the mark of a test asks for the check; without a mark, ``by_default``."""
    mark = item.get_closest_marker(NAME)
    if mark is None:
        return by_default
    return bool(mark.args[0] if mark.args else mark.kwargs.get("check", True))


_WATCH = pytest.StashKey["_TestWatch"]()
"""In ``config.stash``: the watch of the test that runs."""


@pytest.fixture
def hookviz_leaks(request: pytest.FixtureRequest) -> Generator[None]:
    """Report an error if hooks are left behind after the test and the teardown of its own fixtures.

    This fixture is set up first, so its own teardown comes last. By then the test itself has its result, so pytest
    reports an error at teardown, which fails the run as a failure does.
    """
    if not _is_checked(request.node, by_default=True):
        yield
        return
    watch = request.config.stash[_WATCH] = _TestWatch()
    try:
        yield
        report = watch.report(_variables_of(request))
    finally:
        del request.config.stash[_WATCH]
    if report:
        pytest.fail(report, pytrace=False)


def _variables_of(request: pytest.FixtureRequest) -> dict[str, object]:
    """The fixtures of a test and the global variables of its file; the owners of hooks are named after them."""
    module = getattr(request.node, "module", None)
    variables = {} if module is None else vars(module)
    return {**variables, **request.node.funcargs}


@pytest.hookimpl(hookwrapper=True)  # not wrapper=True, which older releases of pytest do not know
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None]:
    """Note which hooks a fixture of several tests registers: they are its own, and it removes them later."""
    watch = request.config.stash.get(_WATCH, None) if fixturedef.scope != "function" else None
    if watch is not None:
        watch.shared_setup_begins()
    yield  # an error of the fixture is not raised here
    if watch is not None:
        watch.shared_setup_ends()


class _TestWatch:
    """Watches one test; it loads what needs torch only after the tests have loaded torch."""

    def __init__(self) -> None:
        self._watch = self._load()

    @staticmethod
    def _load() -> LeakWatch | None:
        if "torch.optim" not in sys.modules:
            return None
        from hookviz.testing.hook_leaks import LeakWatch

        return LeakWatch()

    def shared_setup_begins(self) -> None:
        """A fixture of several tests is being set up."""
        if self._watch is not None:
            self._watch.shared_setup_begins()

    def shared_setup_ends(self) -> None:
        """A fixture of several tests was set up; if that loaded torch, the watch begins here."""
        if self._watch is None:
            self._watch = self._load()
        else:
            self._watch.shared_setup_ends()

    def report(self, names: Mapping[str, object]) -> str:
        """Describe the hooks that were left behind; an empty text if there are none."""
        if self._watch is None:
            self._watch = self._load()
            if self._watch is None:
                return ""
            self._watch.count_from_first_hook()  # the test itself loaded torch
        return self._watch.report(names)
