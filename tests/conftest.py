"""Fixtures and settings of all tests."""

import gc
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import torch
import torch.nn.modules.module as torch_modules

if TYPE_CHECKING:
    from xdist.scheduler import LoadFileScheduling


def pytest_configure() -> None:
    """Set the width of tables, spare an import, and restore SIGINT, which a shell disables in the background."""
    os.environ["COLUMNS"] = "100"
    # jsonschema, which reading a notebook imports, compiles 38 grammars of it for seconds, for formats not tested here.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three processes for two cores: tests in a browser, and tests that start a process, wait most of their time.

    One per core with ``--numprocesses logical``, for the quick tests, which do not wait.
    """
    cores = os.cpu_count() or 1
    return cores if config.option.numprocesses == "logical" else min(8, cores + max(2, cores) // 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "LoadFileScheduling | None":
    """Return a scheduler that distributes tests by file, and gives those that share JupyterLab to one process."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.scheduling import ByFileOrServer

    return ByFileOrServer(config, log)


@pytest.fixture(autouse=True, scope="module")
def freeze_existing_objects() -> None:
    """Exclude existing objects from garbage collection, so that collections skip the million objects of torch."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def seed_torch() -> None:
    """Seed torch for each test file: random values determine how long the displayed texts are."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="module")
def assert_no_global_module_hooks_remain() -> Iterator[None]:
    """Fail if a file leaves a global module hook, which would run in the tests of other files."""
    yield
    global_state = {name: value for name, value in vars(torch_modules).items() if name.startswith("_global") and value}
    assert not {name: value for name, value in global_state.items() if isinstance(value, dict)}


@pytest.fixture
def compiler() -> Iterator[None]:
    """Ignore warnings that importing the compiler causes, and drop compiled code after the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
        torch._dynamo.reset()
